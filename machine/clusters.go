package machine

import (
	"time"

	"hdsd/aggregate"
	"hdsd/assign"
	"hdsd/catalog"
	"hdsd/health"
	"hdsd/ruling"
)

// apply takes a change of the clusters through the rooms: rules, canaries, then ids and
// assignments. Data planes get the change before the plan moves, since planning takes
// time. Restored overrides come last: only then can the aggregator explain the votes.
func (m *Machine) apply(now time.Time, d *catalog.Delivery) {
	before := m.Rulings.Len()
	initialChanged := m.Rules != nil && m.Rules.InitialHealth != d.Rules.InitialHealth
	m.setRules(now, d.Rules)
	moved := planning{m}.count(d)
	change := ruling.Change{InitialHealth: d.Rules.InitialHealth, Removed: d.Removed, Answered: d.Answered, Complete: d.Complete}
	changedProbes := map[string][]bool{}
	for _, name := range d.Removed {
		m.Rollout.RemoveCluster(now, name)
	}
	for _, changed := range d.Changed {
		k := changed.Cluster
		m.Rollout.SetCluster(now, k, changed.Renewed)
		change.Changed = append(change.Changed, k)
		if changed.Renewed != nil {
			changedProbes[k.Source.Name] = changed.Renewed
		}
	}
	m.yield(m.changing(&change))
	effects := m.Rulings.Apply(now, change)
	m.setMembers(now, effects.Members, changedProbes)
	planning{m}.replan(moved)
	m.decide(effects)
	m.applyFleet(now, m.Fleet.Apply(now))
	m.applyRulings(now, m.Rulings.Announce(now, effects.Unannounced))
	m.forgetAbsent()
	m.yield(ClustersApplied{
		Removed: d.Removed, Changed: change.Changed, InitialHealth: initialChanged,
		CheckedBefore: before, CheckedNothing: before > 0 && m.Rulings.Len() == 0,
	})
}

// changing returns the clusters that are about to change.
func (m *Machine) changing(change *ruling.Change) ClustersChanged {
	effect := ClustersChanged{Removed: change.Removed, Changed: change.Changed, Before: map[string]*catalog.Cluster{}, Conclusive: m.Rulings.IsConclusive()}
	remember := func(name string) {
		if k := m.Rulings.Cluster(name); k != nil {
			effect.Before[name] = k
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
	m.Judge.Configure(m.Timing.aggregating(r.Trust))
	if before != r {
		m.Fleet.SetCapacity(r.SetCapacity)
		m.Fleet.SetProbation(now, r.Probation)
	}
}

// applyRulings carries out effects that are not part of a change of the clusters.
func (m *Machine) applyRulings(now time.Time, e ruling.Effects) {
	m.setMembers(now, e.Members, nil)
	m.decide(e)
}

// decide adds decisions in their order.
func (m *Machine) decide(e ruling.Effects) {
	for i := range e.Decisions {
		m.yield(Decided{&e.Decisions[i]})
	}
	if e.LeftOut > 0 {
		m.yield(LeftOut{e.LeftOut})
	}
}

// setMembers tells the aggregator and the fleet which endpoints there are. changedProbes
// lists, by cluster and index, those that checkers will take for new ones.
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
	m.Judge.Reserve(added)
	m.Fleet.Reserve(checked)
	var cluster *catalog.Cluster
	var changed []bool
	var judged aggregate.Endpoint
	var planned assign.Endpoint
	for i := range members {
		member := &members[i]
		m.touch(member.Cluster.Source.Name)
		if member.Index == catalog.None {
			m.setUnchecked(now, member)
			continue
		}
		if k := member.Cluster; k != cluster {
			cluster, changed = k, changedProbes[k.Source.Name]
			judged = aggregate.Endpoint{Timing: m.Timing.judging(k), Rule: k.Rule, Cluster: k.Source.Name}
			planned = planning{m}.template(k)
		}
		judged.ID, judged.Zone = member.ID, *cluster.Checked.LocalityOf(member.Index)
		m.Judge.Set(judged, health.Verdict{Status: member.Status, Since: member.Since})
		if member.New {
			m.penalties.introduce(now, m.Judge, member.ID, cluster.Hashes[member.Index])
		}
		if !member.New && changed != nil && changed[member.Index] {
			m.Fleet.Renew(member.ID)
		}
		planning{m}.set(&planned, cluster, member.ID, member.Index)
	}
}

// setUnchecked tells the aggregator and the fleet that nobody checks an endpoint.
func (m *Machine) setUnchecked(now time.Time, member *ruling.Member) {
	if member.WasChecked {
		m.Newcomers.Remove(member.ID)
		for _, checker := range m.Fleet.Remove(member.ID) {
			m.Judge.Unassign(now, member.ID, checker)
		}
	}
	if member.Gone {
		m.Judge.Remove(member.ID)
		return
	}
	m.Judge.Set(aggregate.Endpoint{ID: member.ID, Cluster: member.Cluster.Source.Name}, health.Verdict{Status: member.Status, Since: member.Since}) // with the zero rule, its verdict holds
}

// touch notes that endpoints of a cluster changed.
func (m *Machine) touch(cluster string) {
	if m.touched != cluster {
		m.touched = cluster
		m.yield(EndpointsChanged{cluster})
	}
}
