package machine

import (
	"time"

	"hdsd/aggregate"
	"hdsd/assign"
	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
	"hdsd/ruling"
)

// applyDelivery passes a change of the clusters to the rooms: rules, canaries, then ids and assignments. Planning
// takes time, so data planes get the change first. Restored overrides come last, when the aggregator can
// explain the votes.
func (m *Machine) applyDelivery(now time.Time, d *catalog.Delivery) {
	before := m.Rulings.Len()
	initialChanged := m.Rules != nil && m.Rules.InitialHealth != d.Rules.InitialHealth
	m.setRules(now, d.Rules)
	moved := planner{m}.count(d)
	change := ruling.Change{InitialHealth: d.Rules.InitialHealth, Removed: d.Removed, Answered: d.Answered, Complete: d.Complete}
	probes := map[string][]bool{}
	for _, name := range d.Removed {
		m.Rollout.RemoveCluster(now, name)
	}
	for _, changed := range d.Changed {
		k := changed.Cluster
		m.Rollout.SetCluster(now, k, changed.Renewed)
		change.Changed = append(change.Changed, k)
		if changed.Renewed != nil {
			probes[k.Source.Name] = changed.Renewed
		}
	}
	m.yield(announceClusters(m.Rulings, &change))
	effects := m.Rulings.Apply(now, change)
	m.setMembers(now, effects.Members, probes)
	planner{m}.replan(moved)
	m.yieldDecisions(effects)
	m.applyFleet(now, m.Fleet.Apply(now))
	m.applyRulings(now, m.Rulings.Announce(now, effects.Unannounced))
	m.forgetAbsent()
	m.yield(ClustersApplied{
		Removed: d.Removed, Changed: change.Changed, InitialHealthChanged: initialChanged,
		PreviouslyChecked: before, NothingChecked: before > 0 && m.Rulings.Len() == 0,
	})
}

// announceClusters returns the effect that announces a change of the clusters.
func announceClusters(rulings *ruling.Table, change *ruling.Change) ClustersChanged {
	effect := ClustersChanged{Removed: change.Removed, Changed: change.Changed, Previous: map[string]*catalog.Cluster{}, Conclusive: rulings.IsConclusive()}
	remember := func(name string) {
		if k := rulings.Cluster(name); k != nil {
			effect.Previous[name] = k
		}
	}
	for _, name := range change.Removed {
		remember(name)
	}
	for _, k := range change.Changed {
		remember(k.Source.Name)
	}
	return effect
}

// setRules applies the rules of the configuration.
func (m *Machine) setRules(now time.Time, r *catalog.Rules) {
	before := m.Rules
	m.Rules = r
	m.Aggregator.Configure(m.Timing.aggregatorOptions(r.Trust))
	if before != r {
		m.Fleet.SetCapacity(r.SetCapacity)
		m.Fleet.SetProbation(now, r.Probation)
	}
}

// applyRulings applies effects of the rulings outside of a change of the clusters.
func (m *Machine) applyRulings(now time.Time, e ruling.Effects) {
	m.setMembers(now, e.Members, nil)
	m.yieldDecisions(e)
}

// yieldDecisions yields the decisions in their order.
func (m *Machine) yieldDecisions(e ruling.Effects) {
	for i := range e.Decisions {
		m.publish(&e.Decisions[i].Change)
		m.log(&e.Decisions[i].Entry)
	}
	if e.LeftOut > 0 {
		m.yield(ChangesLeftOut{e.LeftOut})
	}
}

// publish yields a change for data planes unless it is empty.
func (m *Machine) publish(c *publish.Change) {
	if !c.IsEmpty() {
		m.yield(Published{c})
	}
}

// log yields an entry unless it is empty.
func (m *Machine) log(e *log.Entry) {
	if !e.IsEmpty() {
		m.yield(Logged{e})
	}
}

// setMembers passes new, changed and removed endpoints to the aggregator and the fleet. changedProbes marks,
// by cluster and index, the endpoints that checkers will take for new ones.
func (m *Machine) setMembers(now time.Time, members []ruling.Member, changedProbes map[string][]bool) {
	checked, added := 0, 0
	for i := range members {
		if members[i].Index != catalog.None {
			checked++
		}
		if members[i].New {
			added++
		}
	}
	m.Aggregator.Reserve(added)
	m.Fleet.Reserve(checked)
	var cluster *catalog.Cluster
	var changed []bool
	var judged aggregate.Endpoint
	var planned assign.Endpoint
	for i := range members {
		member := &members[i]
		m.yieldEndpointsChanged(member.Cluster.Source.Name)
		if member.Index == catalog.None {
			m.setUnchecked(now, member)
			continue
		}
		if k := member.Cluster; k != cluster {
			cluster, changed = k, changedProbes[k.Source.Name]
			judged = aggregate.Endpoint{Timing: m.Timing.checkTiming(k), Rule: k.Rule, Cluster: k.Source.Name}
			planned = planner{m}.template(k)
		}
		judged.ID, judged.Zone = member.ID, *cluster.Checked.LocalityOf(member.Index)
		m.Aggregator.Set(judged, health.Verdict{Status: member.Status, Since: member.Since})
		if member.New {
			m.penalties.restore(now, m.Aggregator, member.ID, cluster.Hashes[member.Index])
		}
		if !member.New && changed != nil && changed[member.Index] {
			m.Fleet.Renew(member.ID)
		}
		planner{m}.set(&planned, cluster, member.ID, member.Index)
	}
}

// setUnchecked removes an endpoint from the fleet, and lets the aggregator hold its verdict.
func (m *Machine) setUnchecked(now time.Time, member *ruling.Member) {
	if member.WasChecked {
		m.Newcomers.Remove(member.ID)
		for _, checker := range m.Fleet.Remove(member.ID) {
			m.Aggregator.Unassign(now, member.ID, checker)
		}
	}
	if member.Gone {
		m.Aggregator.Remove(member.ID)
		return
	}
	// The zero rule holds the verdict.
	m.Aggregator.Set(aggregate.Endpoint{ID: member.ID, Cluster: member.Cluster.Source.Name}, health.Verdict{Status: member.Status, Since: member.Since})
}

// yieldEndpointsChanged yields EndpointsChanged once for a run of endpoints of one cluster.
func (m *Machine) yieldEndpointsChanged(cluster string) {
	if m.changedCluster != cluster {
		m.changedCluster = cluster
		m.yield(EndpointsChanged{cluster})
	}
}
