package ruling

import (
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/coordinator/decision"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
)

// Change is a change of the clusters, as the sources give it.
type Change struct {
	InitialHealth health.Status // of an endpoint before its first verdict
	Removed       []string
	Changed       []*catalog.Cluster // new clusters and new versions
	Answered      map[string]bool    // sources that have given everything they were asked for
	Complete      bool               // whether all sources have
}

// Apply applies a change of the clusters. The caller passes Effects.Unannounced to Announce
// after the aggregator and the planner have applied Effects.Members.
func (t *Table) Apply(now time.Time, c Change) Effects {
	t.advance(now)
	e := t.edit(now)
	e.answering = c.Answered
	count := 0
	for _, k := range c.Changed {
		count += len(k.Hashes)
	}
	e.effects.Members = make([]Member, 0, count)
	e.rows.reserve(count)
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

// edit collects the effects of one change to a table.
type edit struct {
	*Table
	now       time.Time
	effects   Effects
	decision  decision.Decision    // under construction
	services  map[string]bool      // names of assignments to rebuild
	removed   []string             // names of clusters
	reweighed []health.EndpointID  // what counts of their health changed
	answering map[string]bool      // sources that have answered with this change
	moves     *moves               // of the cluster that is replaced; made when needed
	moved     map[health.Hash]bool // endpoints that are in another locality now
}

func (t *Table) edit(now time.Time) *edit {
	return &edit{Table: t, now: now, services: map[string]bool{}}
}

// finish ends the current decision and returns all effects.
func (e *edit) finish() Effects {
	e.next()
	return e.effects
}

// next ends the current decision and starts another.
func (e *edit) next() {
	e.effects.add(e.decision)
	e.decision = decision.Decision{}
}

// publish adds the changed assignments and zone health to the current decision, and ends
// it.
func (e *edit) publish() {
	e.makeAssignments()
	e.decision.Zones = append(e.decision.Zones, e.zoneHealth(e.zoneViews.of(e.reweighed))...)
	e.next()
}

// setInitialHealth publishes a new initial health for endpoints without a verdict.
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

// replace replaces a cluster by its next version. Either may be nil.
func (e *edit) replace(before, after *catalog.Cluster) {
	d := &e.decision
	e.moves = nil
	if before != nil {
		e.clusters.remove(before)
		delete(e.rows.checked, before)
		e.services[before.Source.ServiceName] = true
	}
	if after != nil {
		e.clusters.add(after)
		e.services[after.Source.ServiceName] = true
		e.forgetPast(before, after)
		e.addChecked(before, after)
		e.addExcluded(before, after)
	}
	if before != nil {
		e.dropLeft(before)
	}
	e.Takeovers.replace(e.now, before, after, &e.rows)
	if after != nil {
		e.reweigh(before, after)
	}
	switch {
	case after != nil && after.IsPublished():
		d.Update.Clusters = append(d.Update.Clusters, e.form(after))
	case before != nil && before.IsPublished():
		d.Update.RemovedClusters = append(d.Update.RemovedClusters, before.Source.Name)
	}
	switch {
	case before == nil:
		d.Clusters = append(d.Clusters, after.Source.Name)
	case after == nil:
		e.removed = append(e.removed, before.Source.Name)
	}
}

// addChecked adds the checked endpoints of a cluster.
func (e *edit) addChecked(before, k *catalog.Cluster) {
	ids := make([]health.EndpointID, len(k.Hashes))
	e.rows.checked[k] = ids
	for i := range ids {
		id, isNew := e.rows.place(k, i, e.now)
		ids[i] = id
		m := Member{ID: id, Cluster: k, Index: i, New: isNew}
		if isNew {
			key := k.Checked.Key(i)
			e.inherit(before, k, k.Hashes[i], &key)
			e.inheritVersion(k, k.Hashes[i], &key)
			m.Status, m.Since = e.introduce(id)
		}
		e.effects.Members = append(e.effects.Members, m)
	}
}

// addExcluded keeps the last verdict of excluded endpoints: a mistake in a file must not
// send traffic to endpoints that were down. It also adds excluded endpoints that an
// override decides.
func (e *edit) addExcluded(before, k *catalog.Cluster) {
	for i := range k.Excluded {
		excluded := &k.Excluded[i]
		overridden := excluded.Index != catalog.None && k.IsChecked() && e.overrides.of(k, excluded.Key) != nil
		if excluded.Disabled && !overridden {
			continue
		}
		m := Member{Cluster: k, Index: catalog.None}
		id, r := e.rows.of(excluded.Hash)
		if r == nil {
			e.inherit(before, k, excluded.Hash, &excluded.Key)
		}
		switch {
		case r == nil && !overridden && e.past.last[excluded.Hash].Status == health.Unknown:
			continue // nothing to hold
		case r == nil:
			m.ID, m.New = e.rows.add(row{hash: excluded.Hash, cluster: k, index: catalog.None, excluded: excluded}, e.now), true
			m.Status, m.Since = e.introduce(m.ID)
			e.effects.Members = append(e.effects.Members, m)
			continue
		case !r.judged && r.override() == nil, r.cluster == k && r.checked():
			continue // nothing to hold, or its twin is checked
		case r.checked():
			m.ID, m.WasChecked = id, true
			e.effects.Members = append(e.effects.Members, m)
		}
		r.cluster, r.index, r.excluded, r.stranded, r.lacks = k, catalog.None, excluded, false, 0
	}
}

// introduce starts a new row with the last known health, and returns the verdict of the
// votes.
func (e *edit) introduce(id health.EndpointID) (health.Status, time.Time) {
	r := &e.rows.all[id]
	held, votes, known, overridden := e.past.take(r.hash)
	e.rows.judge(r, votes.Status, known)
	e.restoreOverlay(id, r, &held, &votes, overridden)
	e.setHealth(id, r)
	return votes.Status, votes.Since
}

// restoreOverlay finds the override that decides a new row. If that is not the one from
// before the restart, it is to be announced.
func (e *edit) restoreOverlay(id health.EndpointID, r *row, held, votes *health.Verdict, overridden bool) {
	o := e.overrides.of(r.cluster, r.key())
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

// reweigh publishes the endpoints of a cluster whose upstream_health changed, or what they get
// before the first verdict, which may depend on whether it is taken over. While the change is
// under way, data planes get the worse of both.
func (e *edit) reweigh(before, after *catalog.Cluster) {
	switch {
	case before == nil && !after.IgnoresNew():
		return
	case before != nil && before.UpstreamHealth == after.UpstreamHealth && before.IgnoresNew() == after.IgnoresNew() && before.HasOwnChecks() == after.HasOwnChecks():
		return
	}
	to := &e.decision.Health
	if after.UpstreamHealth == configv1.UpstreamHealth_THEIRS {
		to = &e.decision.Withdrawn
	}
	for i := range after.Endpoints {
		if id, ok := e.IDOf(&after.Endpoints[i]); ok {
			*to = append(*to, eds.Health{ID: id, Status: e.publishing.health(&e.rows.all[id])})
			e.reweighed = append(e.reweighed, id)
		}
	}
}

// dropLeft drops the rows of a cluster that its next version did not take over.
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

// drop removes an endpoint that is neither checked nor held. While hdsd settles, it may
// come back, so its health is remembered instead of recorded as gone.
func (e *edit) drop(id health.EndpointID, r *row) {
	d, from, votes := &e.decision, r.health(), e.Votes(id)
	more, left := e.forget(id)
	e.effects.LeftOut += left
	e.summarize(d, e.now, id, more)
	switch {
	case e.moved[r.hash], e.hasMoved(r, votes.Observations):
	case !e.settled:
		e.past.keep(r, votes.Since)
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

// forgetPast forgets the stored health of endpoints that appear only after hdsd has
// settled and their sources have answered without them. They were gone, so they start
// anew.
func (e *edit) forgetPast(before, after *catalog.Cluster) {
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

// concludePast records remembered endpoints as gone, once that is certain. It keeps those
// of a cluster that a mistake hides.
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
