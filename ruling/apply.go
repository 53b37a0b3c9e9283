package ruling

import (
	"time"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
)

// Change is a change of the clusters by the sources.
type Change struct {
	InitialHealth health.Status // of an endpoint before its first verdict
	Removed       []string
	Changed       []*catalog.Cluster // new clusters and new versions
	Answered      map[string]bool    // sources that have answered in full
	Complete      bool               // all sources have answered in full
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
	for _, k := range c.Changed {
		e.noteLeaving(k)
	}
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
	decision  Decision                   // in progress
	services  map[string]bool            // names of assignments to rebuild
	removed   []string                   // names of removed clusters
	reweighed []health.EndpointID        // endpoints whose health counts differently
	answering map[string]bool            // sources that answered with this change
	moves     *moves                     // of the replaced cluster; made when needed
	moved     map[health.Hash]bool       // endpoints that moved to another locality
	leaving   map[health.Hash]log.Health // verdicts of other versions before the change, for new endpoints
}

func (t *Table) edit(now time.Time) *edit {
	return &edit{Table: t, now: now, services: map[string]bool{}}
}

// finish ends the current decision and returns all effects.
func (e *edit) finish() Effects {
	e.nextDecision()
	return e.effects
}

// nextDecision ends the current decision and starts another.
func (e *edit) nextDecision() {
	e.effects.add(e.decision)
	e.decision = Decision{}
}

// publish adds the changed assignments and zone health to the current decision, and ends
// it.
func (e *edit) publish() {
	e.makeAssignments()
	e.decision.Zones = append(e.decision.Zones, e.zoneHealth(e.zoneViews.views(e.reweighed))...)
	e.nextDecision()
}

// setInitialHealth publishes a new initial health for endpoints without a verdict.
func (e *edit) setInitialHealth(status health.Status) {
	p := &e.publishing
	if p.initial == status {
		return
	}
	p.initial = status
	if p.freeze.Publication() == log.Held {
		e.effects.add(e.republished())
		return
	}
	for id := range e.rows.byID {
		if r := &e.rows.byID[id]; r.cluster != nil && !r.judged {
			e.setHealth(health.EndpointID(id), r)
		}
	}
}

func (e *edit) setHealth(id health.EndpointID, r *row) {
	e.decision.Health = append(e.decision.Health, publish.Health{ID: id, Status: e.publishing.health(r)})
}

// replace replaces a cluster by its next version. Either may be nil.
func (e *edit) replace(previous, next *catalog.Cluster) {
	d := &e.decision
	e.moves = nil
	if previous != nil {
		e.clusters.remove(previous)
		delete(e.rows.checked, previous)
		e.services[previous.Source.ServiceName] = true
	}
	if next != nil {
		e.clusters.add(next)
		e.services[next.Source.ServiceName] = true
		e.forgetPast(previous, next)
		e.addChecked(previous, next)
		e.addExcluded(previous, next)
	}
	if previous != nil {
		e.dropLeft(previous)
	}
	e.replaceTakeover(previous, next)
	if next != nil {
		e.reweigh(previous, next)
	}
	switch {
	case next != nil && next.IsPublished():
		d.Update.Clusters = append(d.Update.Clusters, e.form(next))
	case previous != nil && previous.IsPublished():
		d.Update.RemovedClusters = append(d.Update.RemovedClusters, previous.Source.Name)
	}
	switch {
	case previous == nil:
		d.Clusters = append(d.Clusters, next.Source.Name)
	case next == nil:
		e.removed = append(e.removed, previous.Source.Name)
	}
}

// addChecked adds the checked endpoints of a cluster.
func (e *edit) addChecked(previous, k *catalog.Cluster) {
	ids := make([]health.EndpointID, len(k.Hashes))
	e.rows.checked[k] = ids
	for i := range ids {
		id, isNew := e.rows.place(k, i, e.now)
		ids[i] = id
		m := Member{ID: id, Cluster: k, Index: i, New: isNew}
		if isNew {
			key := k.Checked.Key(i)
			e.inherit(previous, k, k.Hashes[i], &key)
			e.inheritVersion(k, k.Hashes[i], &key)
			m.Status, m.Since = e.introduce(id)
		}
		e.effects.Members = append(e.effects.Members, m)
	}
}

// addExcluded keeps the last verdict of excluded endpoints: a mistake in a file must not
// send traffic to endpoints that were down. It also adds excluded endpoints that an
// override decides.
func (e *edit) addExcluded(previous, k *catalog.Cluster) {
	for i := range k.Excluded {
		excluded := &k.Excluded[i]
		overridden := excluded.Index != catalog.None && k.IsChecked() && e.overrides.find(k, excluded.Key) != nil
		if excluded.Disabled && !overridden {
			continue
		}
		m := Member{Cluster: k, Index: catalog.None}
		id, r := e.rows.find(excluded.Hash)
		if r == nil {
			e.inherit(previous, k, excluded.Hash, &excluded.Key)
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
	r := &e.rows.byID[id]
	held, votes, known, overridden := e.past.restoreRow(r.hash)
	e.rows.judge(r, votes.Status, known)
	e.restoreOverlay(id, r, &held, &votes, overridden)
	e.setHealth(id, r)
	return votes.Status, votes.Since
}

// restoreOverlay finds the override that decides a new row. If the override before the restart
// was another, Announce records the difference later.
func (e *edit) restoreOverlay(id health.EndpointID, r *row, held, votes *health.Verdict, overridden bool) {
	o := e.overrides.find(r.cluster, r.key())
	switch {
	case o == nil && !overridden:
		return
	case o != nil && overridden && o.Status == held.Status:
		e.rows.overlay(r, &overlay{o, held.Since})
		return
	}
	e.rows.overlay(r, &overlay{o, e.now})
	ruled := Ruled{id: id, previousHealth: held.Status}
	if !r.checked() {
		ruled.voted = &health.Verdict{Status: votes.Status, Since: votes.Since}
	}
	e.effects.Unannounced = append(e.effects.Unannounced, ruled)
}

// reweigh publishes the endpoints of a cluster after a change of its upstream_health, or of the
// health before the first verdict, which may depend on takeover. During the change, data planes
// get the worse of both.
func (e *edit) reweigh(previous, next *catalog.Cluster) {
	switch {
	case previous == nil && !next.IgnoresNew():
		return
	case previous != nil && previous.UpstreamHealth == next.UpstreamHealth && previous.IgnoresNew() == next.IgnoresNew() && previous.HasOwnChecks() == next.HasOwnChecks():
		return
	}
	healths := &e.decision.Health
	if next.UpstreamHealth == configv1.UpstreamHealth_THEIRS {
		healths = &e.decision.Withdrawn
	}
	for i := range next.Endpoints {
		if id, ok := e.IDOf(&next.Endpoints[i]); ok {
			*healths = append(*healths, publish.Health{ID: id, Status: e.publishing.health(&e.rows.byID[id])})
			e.reweighed = append(e.reweighed, id)
		}
	}
}

// dropLeft drops the rows that the cluster's next version did not adopt.
func (e *edit) dropLeft(k *catalog.Cluster) {
	for _, hash := range k.Hashes {
		if id, r := e.rows.find(hash); r != nil && r.cluster == k {
			e.drop(id, r)
		}
	}
	for i := range k.Excluded {
		if id, r := e.rows.find(k.Excluded[i].Hash); r != nil && r.cluster == k {
			e.drop(id, r)
		}
	}
}

// drop removes an endpoint that is neither checked nor held. While hdsd settles, it may
// come back, so its health is remembered instead of recorded as gone.
func (e *edit) drop(id health.EndpointID, r *row) {
	d, status, votes := &e.decision, r.health(), e.Votes(id)
	earlier, omitted := e.forget(id)
	e.effects.LeftOut += omitted
	e.summarize(d, e.now, id, earlier)
	switch {
	case r.gone, e.moved[r.hash], e.hasMoved(r, votes.Observations):
	case !e.settled:
		e.past.keep(r, votes.Since)
	case status != health.Unknown:
		key := r.key()
		d.Transitions = append(d.Transitions, goneTransition(e.clusters.byName[key.Cluster], key, status, e.now))
	}
	if e.settled && r.override() != nil {
		d.Unvoted = append(d.Unvoted, r.hash)
	}
	e.effects.Members = append(e.effects.Members, Member{ID: id, Cluster: r.cluster, Index: catalog.None, WasChecked: r.checked(), Gone: true})
	e.rows.release(id, e.now)
}

// forgetPast forgets the stored health of endpoints that appear after hdsd has settled and
// their sources have answered without them. They were gone, so they start anew.
func (e *edit) forgetPast(previous, next *catalog.Cluster) {
	src := next.Source
	if !e.settled || len(e.past.last) == 0 || hidesEndpoints(previous) || !e.answered[src.Source] || !e.answered[src.EndpointSource()] {
		return
	}
	forget := func(hash health.Hash) {
		last, known := e.past.forget(hash)
		if !known {
			return
		}
		e.decision.Unvoted = append(e.decision.Unvoted, hash)
		if last.Status != health.Unknown {
			e.decision.Transitions = append(e.decision.Transitions, goneTransition(previous, last.Endpoint, last.Status, e.now))
		}
	}
	for _, hash := range next.Hashes {
		forget(hash)
	}
	for i := range next.Excluded {
		forget(next.Excluded[i].Hash)
	}
}

// concludePast records remembered endpoints as gone, once that is certain. It keeps the
// endpoints of a cluster hidden by a mistake.
func (e *edit) concludePast() {
	if !e.IsConclusive() {
		return
	}
	hidden := func(cluster string) bool { return hidesEndpoints(e.clusters.byName[cluster]) }
	lost, unvoted := e.past.conclude(hidden)
	for i := range lost {
		key := lost[i].Endpoint
		e.decision.Transitions = append(e.decision.Transitions, goneTransition(e.clusters.byName[key.Cluster], key, lost[i].Status, e.now))
	}
	e.decision.Unvoted = unvoted
	e.decision.Removed = e.takeovers.conclude(hidden)
	e.nextDecision()
}
