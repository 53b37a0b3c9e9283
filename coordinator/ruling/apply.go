package ruling

import (
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/coordinator/decision"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
)

// Change is a change of the clusters.
type Change struct {
	InitialHealth health.Status // of an endpoint before its first verdict
	Removed       []string
	Changed       []*catalog.Cluster // new ones or new versions
	Answered      map[string]bool    // the sources that have said all that they were asked
	Complete      bool               // each source has
}

// Apply takes a change of the clusters over. The caller passes Effects.Unannounced to
// Announce once the aggregator and the planner have followed Effects.Members.
func (t *Table) Apply(now time.Time, c Change) Effects {
	e := t.edit(now)
	e.setInitialHealth(c.InitialHealth)
	for _, name := range c.Removed {
		e.replace(t.clusters.byName[name], nil)
	}
	for _, k := range c.Changed {
		e.replace(t.clusters.byName[k.Source.Name], k)
	}
	t.clusters.rename(e.decision.Clusters, e.removed)
	e.publish()
	t.answered, t.complete = c.Answered, c.Complete
	e.concludePast()
	return e.finish()
}

// edit gathers what a change comes to.
type edit struct {
	*Table
	now       time.Time
	effects   Effects
	decision  decision.Decision // the next one
	services  map[string]bool   // whose assignments change
	removed   []string          // clusters
	reweighed []health.EndpointID
}

func (t *Table) edit(now time.Time) *edit {
	return &edit{Table: t, now: now, services: map[string]bool{}}
}

// finish gives all effects.
func (e *edit) finish() Effects {
	e.next()
	return e.effects
}

// next begins another decision.
func (e *edit) next() {
	e.effects.add(e.decision)
	e.decision = decision.Decision{}
}

// publish ends a decision with the assignments that change.
func (e *edit) publish() {
	e.makeAssignments()
	e.decision.Zones = append(e.decision.Zones, e.zoneHealth(e.zoneViews.of(e.reweighed))...)
	e.next()
}

// setInitialHealth publishes another initial health of what has no verdict.
func (e *edit) setInitialHealth(to health.Status) {
	p := &e.publishing
	if p.initial == to {
		return
	}
	p.initial = to
	if decision.PublicationUnder(p.freeze) == decision.Held {
		e.effects.add(e.republished())
		return
	}
	for id := range e.rows.all {
		if r := &e.rows.all[id]; r.cluster != nil && !r.judged {
			e.setHealth(health.EndpointID(id), r)
		}
	}
}

func (e *edit) setHealth(id health.EndpointID, r *row) {
	e.decision.Health = append(e.decision.Health, eds.Health{ID: id, Status: e.publishing.health(r)})
}

// replace puts a cluster in the place of the one before; either may be nil.
func (e *edit) replace(before, after *catalog.Cluster) {
	d := &e.decision
	if before != nil {
		e.clusters.remove(before)
		e.services[before.Source.ServiceName] = true
	}
	if after != nil {
		e.clusters.add(after)
		e.services[after.Source.ServiceName] = true
		e.forgetUnheard(before, after)
		e.addChecked(after)
		e.addExcluded(after)
		e.reweigh(before, after)
	}
	if before != nil {
		e.dropLeft(before)
	}
	switch {
	case after != nil && after.Published != nil:
		d.Update.Clusters = append(d.Update.Clusters, e.publishing.cluster(after))
	case before != nil && before.Published != nil:
		d.Update.RemovedClusters = append(d.Update.RemovedClusters, before.Source.Name)
	}
	switch {
	case before == nil:
		d.Clusters = append(d.Clusters, after.Source.Name)
	case after == nil:
		e.removed = append(e.removed, before.Source.Name)
	}
}

// addChecked gives each checked endpoint of a cluster its row.
func (e *edit) addChecked(k *catalog.Cluster) {
	for i := range k.Hashes {
		id, isNew, wasChecked := e.rows.place(k, i, e.now)
		m := Member{ID: id, Cluster: k, Index: i, New: isNew, WasChecked: wasChecked}
		if isNew {
			m.Last = e.introduce(id)
		}
		e.effects.Members = append(e.effects.Members, m)
	}
}

// addExcluded keeps the last verdict of endpoints that are not checked any more, if a
// mistake excludes them: it is no reason to send traffic to what is known to be down.
// What an override decides is kept too.
func (e *edit) addExcluded(k *catalog.Cluster) {
	for i := range k.Excluded {
		excluded := &k.Excluded[i]
		overridden := excluded.Index != catalog.None && k.IsChecked() && e.overrides.of(excluded.Key) != nil
		if excluded.Disabled && !overridden {
			continue
		}
		m := Member{Cluster: k, Index: catalog.None}
		id, r := e.rows.of(excluded.Hash)
		switch {
		case r == nil && !overridden && e.past.last[excluded.Hash].Status == health.Unknown:
			continue // nothing to hold
		case r == nil:
			m.ID, m.New = e.rows.add(row{hash: excluded.Hash, cluster: k, index: catalog.None, excluded: excluded}, e.now), true
			m.Last = e.introduce(m.ID)
			e.effects.Members = append(e.effects.Members, m)
			continue
		case !r.judged && r.override() == nil, r.cluster == k && r.checked():
			continue // nothing to hold, or its twin is checked
		case r.checked():
			m.ID, m.WasChecked = id, true
			e.effects.Members = append(e.effects.Members, m)
		}
		r.cluster, r.index, r.excluded = k, catalog.None, excluded
	}
}

// introduce begins a row with the last known health, and gives the verdict of the votes.
func (e *edit) introduce(id health.EndpointID) health.Verdict {
	r := &e.rows.all[id]
	held, votes, known, overridden := e.past.take(r.hash)
	e.rows.judge(r, votes.Status, known)
	e.restoreOverlay(id, r, &held, &votes, overridden)
	e.setHealth(id, r)
	return votes
}

// restoreOverlay finds which override decides a new row, and what that changes since
// hdsd stopped.
func (e *edit) restoreOverlay(id health.EndpointID, r *row, held, votes *health.Verdict, overridden bool) {
	o := e.overrides.of(r.key())
	switch {
	case o == nil && !overridden:
		return
	case o != nil && overridden && o.Status == held.Status:
		e.rows.overlay(r, &overlay{o, held.Since})
		return
	}
	e.rows.overlay(r, &overlay{o, e.now})
	ruled := Ruled{id: id, from: held.Status}
	if !r.checked() {
		ruled.voted = &health.Verdict{Status: votes.Status, Since: votes.Since}
	}
	e.effects.Unannounced = append(e.effects.Unannounced, ruled)
}

// reweigh publishes the endpoints of a cluster whose source's word counts for more or
// less than before. In between, data planes get the worse of both.
func (e *edit) reweigh(before, after *catalog.Cluster) {
	if before == nil || before.UpstreamHealth == after.UpstreamHealth {
		return
	}
	to := &e.decision.Health
	if after.UpstreamHealth == configv1.UpstreamHealth_THEIRS {
		to = &e.decision.Withdrawn
	}
	for i := range after.Endpoints {
		if id, ok := e.Find(after.Endpoints[i].Hash); ok {
			*to = append(*to, eds.Health{ID: id, Status: e.publishing.health(&e.rows.all[id])})
			e.reweighed = append(e.reweighed, id)
		}
	}
}

// dropLeft drops the rows that a cluster had and no cluster has taken over.
func (e *edit) dropLeft(k *catalog.Cluster) {
	for _, hash := range k.Hashes {
		if id, r := e.rows.of(hash); r != nil && r.cluster == k {
			e.drop(id, r)
		}
	}
	for i := range k.Excluded {
		if id, r := e.rows.of(k.Excluded[i].Hash); r != nil && r.cluster == k {
			e.drop(id, r)
		}
	}
}

// drop releases an endpoint that is neither checked nor held any more.
func (e *edit) drop(id health.EndpointID, r *row) {
	d, from := &e.decision, r.health()
	switch {
	case !e.settled:
		e.past.keep(r, e.verdict(id).Since)
	case from != health.Unknown:
		key := r.key()
		d.Transitions = append(d.Transitions, goneTransition(e.clusters.byName[key.Cluster], key, from, e.now))
	}
	if e.settled && r.override() != nil {
		d.Unvoted = append(d.Unvoted, r.hash)
	}
	e.effects.Members = append(e.effects.Members, Member{ID: id, Cluster: r.cluster, Index: catalog.None, WasChecked: r.checked(), Gone: true})
	e.rows.release(id, e.now)
}

// forgetUnheard records as gone what was known before the start of endpoints that a
// cluster now has, if its sources had answered without them when hdsd had settled: they
// begin anew.
func (e *edit) forgetUnheard(before, after *catalog.Cluster) {
	from := after.Source
	if !e.settled || len(e.past.last) == 0 || hidesEndpoints(before) || !e.answered[from.Source] || !e.answered[from.EndpointSource()] {
		return
	}
	forget := func(hash health.Hash) {
		last, known := e.past.forget(hash)
		if !known {
			return
		}
		e.decision.Unvoted = append(e.decision.Unvoted, hash)
		if last.Status != health.Unknown {
			e.decision.Transitions = append(e.decision.Transitions, goneTransition(before, last.Endpoint, last.Status, e.now))
		}
	}
	for _, hash := range after.Hashes {
		forget(hash)
	}
	for i := range after.Excluded {
		forget(after.Excluded[i].Hash)
	}
}

// concludePast records as gone what had health when hdsd stopped, or while it settled,
// and is not there, once that is certain. What a mistake hides is waited for.
func (e *edit) concludePast() {
	if !e.IsConclusive() {
		return
	}
	gone, unvoted := e.past.conclude(func(cluster string) bool { return hidesEndpoints(e.clusters.byName[cluster]) })
	for i := range gone {
		key := gone[i].Endpoint
		e.decision.Transitions = append(e.decision.Transitions, goneTransition(e.clusters.byName[key.Cluster], key, gone[i].Status, e.now))
	}
	e.decision.Unvoted = unvoted
	e.next()
}
