package coordinator

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"hdsd/aggregate"
	"hdsd/assign"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/feed"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
)

// edit is what one change of the clusters comes to, stage by stage.
type edit struct {
	now        time.Time
	health     []eds.Health
	withdrawn  []eds.Health        // what does not count any more once the assignments are made again
	reweighed  []health.EndpointID // whose source's word counts for more, or less
	services   map[string]bool     // whose assignment is to be made again
	update     eds.Update
	came, went []string // names of clusters
	effects    []effect
	gone       []health.Transition             // of endpoints
	unvoted    map[health.Hash]*health.Verdict // under overrides, which were gone
}

// apply takes a change of the clusters through all stages.
func (c *core) apply(d feed.Delivery, now time.Time) {
	e := &edit{now: now, services: map[string]bool{}, unvoted: map[health.Hash]*health.Verdict{}}
	before := len(c.table.ids)
	c.unread = !d.Complete
	c.obey(d.Rules, e)
	for _, name := range d.Removed {
		c.exchange(c.clusters[name], nil, nil, e)
	}
	for _, changed := range d.Changed {
		c.exchange(c.clusters[changed.Cluster.Source.Name], changed.Cluster, changed.Renewed, e)
	}
	c.names = renamed(c.names, e.came, e.went)
	c.history.RememberClusters(e.came)
	c.assignments(e)
	// What a released id was published as must not show on its successor.
	c.eds.SetHealth(e.health)
	c.eds.Update(e.update)
	c.eds.SetHealth(e.withdrawn)
	c.retellZones(e.reweighed)
	c.carry(now, time.Now(), c.fleet.Apply(now))
	c.enact(nil, e.gone)
	c.history.SaveVoted(e.unvoted)
	c.proclaim(now, e.effects, "")
	c.heard = d.Answered
	c.part(now)
	c.metrics.catalog(c)
	if before > 0 && len(c.table.ids) == 0 {
		c.log.Warn().Str("event", "nothing_checked").Int("before", before).Int("clusters", len(c.clusters)).
			Msg("no endpoint is checked any more")
	}
}

// obey takes the rules over. Another initial health holds for what has no
// verdict yet.
func (c *core) obey(r *catalog.Rules, e *edit) {
	before := c.rules
	c.rules = r
	c.judge.Configure(c.timing.judging(r.Trust))
	if before != r {
		c.fleet.SetCapacity(r.SetCapacity)
	}
	if before == nil || before.InitialHealth == r.InitialHealth {
		return
	}
	if publishing(c.frozen.Load()) == heldTold {
		c.republish()
		return
	}
	for id := range c.table.rows {
		if row := &c.table.rows[id]; row.cluster != nil && !row.judged {
			e.health = append(e.health, eds.Health{ID: health.EndpointID(id), Status: c.told(row)})
		}
	}
}

// exchange puts a cluster in the place of the one before; either may be nil.
func (c *core) exchange(before, after *catalog.Cluster, renewed []bool, e *edit) {
	if before != nil {
		c.unlist(before, e)
		c.quarantined -= len(before.Quarantined())
	}
	if after != nil {
		c.list(after, e)
		c.quarantined += len(after.Quarantined())
		c.renounce(before, after, e)
		c.succeed(after, renewed, e)
		c.enter(after, renewed, e)
		c.hold(after, e)
		c.reweigh(before, after, e)
	}
	if before != nil {
		c.forget(before, e)
	}
	if after == nil {
		c.dropTrials(before.Source.Name)
	}
	switch {
	case after != nil && after.Published != nil:
		e.update.Clusters = append(e.update.Clusters, c.outward(after))
	case before != nil && before.Published != nil:
		e.update.RemovedClusters = append(e.update.RemovedClusters, before.Source.Name)
	}
	switch {
	case before == nil:
		e.came = append(e.came, after.Source.Name)
	case after == nil:
		e.went = append(e.went, before.Source.Name)
	}
}

// list and unlist keep what there is, and who shares a service name.
func (c *core) list(k *catalog.Cluster, e *edit) {
	name, service := k.Source.Name, k.Source.ServiceName
	c.clusters[name] = k
	e.services[service] = true
	if c.services[service] == nil {
		c.services[service] = map[string]*catalog.Cluster{}
	}
	c.services[service][name] = k
	if k.Shadow && k.IsChecked() {
		c.shadowed++
	}
}

func (c *core) unlist(k *catalog.Cluster, e *edit) {
	name, service := k.Source.Name, k.Source.ServiceName
	delete(c.clusters, name)
	e.services[service] = true
	delete(c.services[service], name)
	if len(c.services[service]) == 0 {
		delete(c.services, service)
	}
	if k.Shadow && k.IsChecked() {
		c.shadowed--
	}
}

// enter makes the endpoints of a cluster known to every stage.
func (c *core) enter(k *catalog.Cluster, renewed []bool, e *edit) {
	if k.Checked == nil {
		return
	}
	class := c.fleet.Class(assign.Class{Needs: k.Checked.Needs, Reach: k.Reach})
	clusterHash := health.ClusterHash(k.Source.Name)
	judged := aggregate.Endpoint{Timing: c.timingOf(k), Rule: k.Rule, Cluster: k.Source.Name}
	for i := range k.Checked.Endpoints {
		id, isNew := c.table.place(k, i, e.now)
		judged.ID, judged.Zone = id, k.Checked.Endpoints[i].Key.Locality
		if isNew {
			c.introduce(judged, e)
		} else {
			c.judge.Set(judged, health.Verdict{})
			if renewed != nil && renewed[i] {
				c.fleet.Renew(id)
			}
		}
		c.fleet.Upsert(assign.Endpoint{
			ID: id, Hash: k.Hashes[i], ClusterHash: clusterHash,
			Locality: k.Checked.Endpoints[i].Key.Locality, Class: class, Redundancy: k.Redundancy,
			Rate: k.Rate, Zones: k.Zones, Regions: k.Regions,
		})
	}
}

// hold keeps the last verdict of endpoints that were set aside: a mistake in a
// file is no reason to send traffic to what is known to be down.
func (c *core) hold(k *catalog.Cluster, e *edit) {
	for i := range k.Excluded {
		aside := &k.Excluded[i]
		overridden := aside.Index != none && k.IsChecked() && c.overrides.of(aside.Key) != nil
		if aside.Disabled && !overridden {
			continue
		}
		id, ok := c.table.ids[aside.Hash]
		if !ok {
			if overridden || c.last[aside.Hash].Status != health.Unknown {
				id = c.table.add(row{hash: aside.Hash, cluster: k, index: none, aside: aside}, e.now)
				c.introduce(aggregate.Endpoint{ID: id, Cluster: k.Source.Name}, e)
			}
			continue
		}
		row := &c.table.rows[id]
		if !row.judged && row.overridden() == nil || row.cluster == k && row.index != none {
			continue // nothing to hold, or its twin is checked
		}
		if row.index != none {
			c.unplan(id, e)
			c.judge.Set(aggregate.Endpoint{ID: id, Cluster: k.Source.Name}, health.Verdict{}) // whatever the rule, it holds
		}
		row.cluster, row.index, row.aside = k, none, aside
	}
}

// unplan has nobody check an endpoint any more.
func (c *core) unplan(id health.EndpointID, e *edit) {
	for _, checker := range c.fleet.Remove(id) {
		c.judge.Unassign(e.now, id, checker)
	}
}

// introduce begins with the last known health of an endpoint.
func (c *core) introduce(judged aggregate.Endpoint, e *edit) {
	row := &c.table.rows[judged.ID]
	shown := c.last[row.hash].Verdict
	last, known, overridden := c.votesBefore(row.hash)
	delete(c.last, row.hash)
	c.table.judge(judged.ID, last.Status, known)
	c.judge.Set(judged, last)
	c.resumeRuling(judged.ID, shown, overridden, e)
	e.health = append(e.health, eds.Health{ID: judged.ID, Status: c.told(row)})
}

// forget lets go of the endpoints of a cluster that no cluster has taken over.
func (c *core) forget(k *catalog.Cluster, e *edit) {
	for _, hash := range k.Hashes {
		if id, ok := c.table.ids[hash]; ok && c.table.rows[id].cluster == k {
			c.unplan(id, e)
			c.drop(id, e)
		}
	}
	for i := range k.Excluded {
		if id, ok := c.table.ids[k.Excluded[i].Hash]; ok && c.table.rows[id].cluster == k {
			c.drop(id, e)
		}
	}
}

func (c *core) timingOf(k *catalog.Cluster) aggregate.Timing {
	t := &k.Checked.Timing
	return aggregate.Timing{
		Interval: t.Interval, Timeout: t.Timeout, InitialJitter: t.InitialJitter,
		UnhealthyThreshold: t.UnhealthyThreshold, ReportInterval: c.timing.report,
	}
}

// assignments makes the assignments of the services touched.
func (c *core) assignments(e *edit) {
	for service := range e.services {
		if a, ok := c.assignment(service); ok {
			e.update.Assignments = append(e.update.Assignments, a)
		} else {
			e.update.RemovedAssignments = append(e.update.RemovedAssignments, service)
		}
	}
}

// assignment makes what is published under a service name. Where clusters
// share it, each endpoint follows the worst of their verdicts; where hdsd decides
// nothing, it is as the source gave it.
func (c *core) assignment(service string) (eds.Assignment, bool) {
	a := eds.Assignment{Name: service}
	sharing := c.services[service]
	for _, name := range slices.Sorted(maps.Keys(sharing)) {
		k := sharing[name]
		message := k.Assignment
		switch {
		case message == nil:
			continue
		case a.Message == nil:
			a.Message, a.Overruled = message, k.UpstreamHealth == configv1.UpstreamHealth_OURS
			a.IDs = make([][][]health.EndpointID, len(message.GetEndpoints()))
			for i, group := range message.GetEndpoints() {
				a.IDs[i] = make([][]health.EndpointID, len(group.GetLbEndpoints()))
			}
		case message != a.Message && !proto.Equal(message, a.Message):
			continue // the sources' catalogue has no such two
		}
		decided := c.deciding(k)
		for i, decides := range k.CheckedIndex {
			for j, index := range decides {
				if index == none {
					continue
				}
				if id, ok := c.table.ids[k.Hashes[index]]; ok && decided(k.Hashes[index], true) {
					a.IDs[i][j] = append(a.IDs[i][j], id)
				}
			}
		}
		for _, aside := range k.Excluded {
			if id, ok := c.table.ids[aside.Hash]; ok && aside.Index != none && decided(aside.Hash, false) {
				a.IDs[aside.Locality][aside.Index] = append(a.IDs[aside.Locality][aside.Index], id)
			}
		}
	}
	return a, a.Message != nil
}

// renamed gives sorted names after some came and some went.
func renamed(names, came, went []string) []string {
	if len(came)+len(went) == 0 {
		return names
	}
	gone := make(map[string]bool, len(went))
	for _, name := range went {
		gone[name] = true
	}
	names = append(slices.DeleteFunc(names, func(name string) bool { return gone[name] }), came...)
	slices.Sort(names)
	return names
}
