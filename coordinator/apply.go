package coordinator

import (
	"time"

	"hdsd/aggregate"
	"hdsd/assign"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/feed"
	"hdsd/coordinator/ruling"
	"hdsd/health"
)

// apply takes a change of the clusters through the rooms: rules, canaries, then ids and
// assignments. Data planes get the change before the plan moves, since planning takes
// time. Restored overrides come last: only then can the aggregator explain the votes.
func (c *core) apply(d feed.Delivery, now time.Time) {
	before := c.rulings.Len()
	initialChanged := c.rules != nil && c.rules.InitialHealth != d.Rules.InitialHealth
	c.setRules(now, d.Rules)
	moved := planning{c}.count(&d)
	change := ruling.Change{InitialHealth: d.Rules.InitialHealth, Removed: d.Removed, Answered: d.Answered, Complete: d.Complete}
	changedProbes := map[string][]bool{}
	for _, name := range d.Removed {
		c.upkeep.outside.Delete(name)
		c.rollout.RemoveCluster(now, name)
		c.upkeep.snapshots.Change(name)
	}
	for _, changed := range d.Changed {
		k := changed.Cluster
		if outside := k.Source.Outside(); outside != k.Source.Name {
			c.upkeep.outside.Store(k.Source.Name, outside)
		} else {
			c.upkeep.outside.Delete(k.Source.Name)
		}
		c.upkeep.snapshots.Change(k.Source.Name)
		c.rollout.SetCluster(now, k, changed.Renewed)
		change.Changed = append(change.Changed, k)
		if changed.Renewed != nil {
			changedProbes[k.Source.Name] = changed.Renewed
		}
	}
	was := chronicle{c.history}.before(c.rulings, d.Removed, change.Changed)
	effects := c.rulings.Apply(now, change)
	chronicle{c.history}.changed(now, was, d.Removed, change.Changed)
	c.setMembers(now, effects.Members, changedProbes)
	planning{c}.replan(moved)
	c.appendDecisions(effects.Decisions)
	c.decisions.events.leaveOut(effects.LeftOut)
	c.applyFleet(now, time.Now(), c.fleet.Apply(now))
	c.applyRulings(now, c.rulings.Announce(now, effects.Unannounced))
	c.forgetAbsent()
	c.upkeep.alarms.apply(view{c}, d.Removed, change.Changed)
	if initialChanged {
		c.upkeep.alarms.publishAll(c.rulings, c.rulings.Clusters())
	}
	c.metrics.rulings.update(c.rulings)
	c.metrics.plan.redundancy.Set(float64(d.Rules.Redundancy()))
	c.metrics.rollout.update(c.rollout.Trials(), c.rollout.BlockedClusters())
	if before > 0 && c.rulings.Len() == 0 {
		c.log.Warn().Str("event", "nothing_checked").Int("before", before).Int("clusters", len(c.rulings.Names())).
			Msg("no endpoint is checked any more")
	}
}

// setRules applies the rules of the configuration.
func (c *core) setRules(now time.Time, r *catalog.Rules) {
	before := c.rules
	c.rules = r
	c.judge.Configure(c.timing.aggregating(r.Trust))
	if before != r {
		c.fleet.SetCapacity(r.SetCapacity)
		c.fleet.SetProbation(now, r.Probation)
	}
}

// applyRulings carries out effects that are not part of a change of the clusters.
func (c *core) applyRulings(now time.Time, e ruling.Effects) {
	c.setMembers(now, e.Members, nil)
	c.appendDecisions(e.Decisions)
	c.decisions.events.leaveOut(e.LeftOut)
}

// setMembers tells the aggregator and the fleet which endpoints there are. changedProbes
// lists, by cluster and index, those that checkers will take for new ones.
func (c *core) setMembers(now time.Time, members []ruling.Member, changedProbes map[string][]bool) {
	checked, added := 0, 0
	for i := range members {
		if members[i].Index != catalog.None {
			checked++
		}
		if members[i].New {
			added++
		}
	}
	c.judge.Reserve(added)
	c.fleet.Reserve(checked)
	var of *catalog.Cluster
	var changed []bool
	var judged aggregate.Endpoint
	var planned assign.Endpoint
	for i := range members {
		m := &members[i]
		c.upkeep.snapshots.Change(m.Cluster.Source.Name)
		if m.Index == catalog.None {
			c.setUnchecked(now, m)
			continue
		}
		if k := m.Cluster; k != of {
			of, changed = k, changedProbes[k.Source.Name]
			judged = aggregate.Endpoint{Timing: c.timing.of(k), Rule: k.Rule, Cluster: k.Source.Name}
			planned = planning{c}.template(k)
		}
		judged.ID, judged.Zone = m.ID, *of.Checked.LocalityOf(m.Index)
		c.judge.Set(judged, health.Verdict{Status: m.Status, Since: m.Since})
		if m.New {
			c.upkeep.penalties.introduce(now, c.judge, m.ID, of.Hashes[m.Index])
		}
		if !m.New && changed != nil && changed[m.Index] {
			c.fleet.Renew(m.ID)
		}
		planning{c}.set(&planned, of, m.ID, m.Index)
	}
}

// setUnchecked tells the aggregator and the fleet that nobody checks an endpoint.
func (c *core) setUnchecked(now time.Time, m *ruling.Member) {
	if m.WasChecked {
		c.newcomers.Remove(m.ID)
		for _, checker := range c.fleet.Remove(m.ID) {
			c.judge.Unassign(now, m.ID, checker)
		}
	}
	if m.Gone {
		c.judge.Remove(m.ID)
		return
	}
	c.judge.Set(aggregate.Endpoint{ID: m.ID, Cluster: m.Cluster.Source.Name}, health.Verdict{Status: m.Status, Since: m.Since}) // with the zero rule, its verdict holds
}
