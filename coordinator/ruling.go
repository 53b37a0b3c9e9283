package coordinator

import (
	"time"

	"hdsd/eds"
	"hdsd/health"
)

// publishEdit publishes what has to do with endpoints that are not checked.
func (c *core) publishEdit(e *edit) {
	if len(e.services) == 0 {
		return
	}
	c.assignments(e)
	c.eds.SetHealth(e.health)
	c.eds.Update(e.update)
	c.proclaim(e.now, e.effects, "")
}

// effect is what an override, or its end, does to an endpoint.
type effect struct {
	id     health.EndpointID
	from   health.Status
	before *override // nil: the votes decided
}

// overrule sees who decides endpoints now, and has that take effect.
func (c *core) overrule(now time.Time, ids []health.EndpointID, how string) {
	fresh := map[*override]*ruling{}
	var effects []effect
	for _, id := range ids {
		row := &c.table.rows[id]
		before, after := row.overridden(), c.overrides.of(row.key())
		if before == after {
			continue
		}
		if fresh[after] == nil {
			fresh[after] = &ruling{after, now}
		}
		effects = append(effects, effect{id, row.health(), before})
		c.table.rule(id, fresh[after])
		if row.passes() {
			c.table.judge(id, health.Unknown, false)
		}
	}
	c.proclaim(now, effects, how)
	c.uncover(now, effects)
	c.metrics.overridden(c)
}

// passes tells whether nothing is to be published of an endpoint but what its
// source says.
func (r *row) passes() bool {
	return r.index == none && r.overridden() == nil && (r.aside.Disabled || !r.judged)
}

// uncover lets go of what is not checked and under no override any more.
func (c *core) uncover(now time.Time, effects []effect) {
	e := &edit{now: now, services: map[string]bool{}}
	for _, each := range effects {
		if row := &c.table.rows[each.id]; row.passes() {
			e.services[row.cluster.Source.ServiceName] = true
			c.drop(each.id, e)
		}
	}
	c.publishEdit(e)
}

// proclaim publishes and records effects, as publish does with verdicts. That of
// an override over the same health is recorded, too: who asks why an endpoint
// did not go down finds it.
func (c *core) proclaim(now time.Time, effects []effect, how string) {
	if len(effects) == 0 {
		return
	}
	healths, transitions := make([]eds.Health, len(effects)), make([]health.Transition, len(effects))
	voted, over := map[health.Hash]*health.Verdict{}, map[health.Hash]*health.Verdict{}
	affected := make([]health.EndpointID, len(effects))
	for i, each := range effects {
		affected[i] = each.id
		row, verdict := &c.table.rows[each.id], c.judge.Verdict(each.id)
		if row.index == none {
			verdict.Reason = "it is not checked"
		}
		t := health.Transition{Time: now, Endpoint: row.key(), From: each.from, To: row.health(), Observations: verdict.Observations}
		if o := row.overridden(); o != nil {
			t.Reason = o.reason()
			voted[row.hash] = &health.Verdict{Status: row.status, Since: verdict.Since}
		} else {
			t.Reason = each.ended(how) + ": " + verdict.Reason
			over[row.hash] = nil
		}
		healths[i], transitions[i] = eds.Health{ID: each.id, Status: c.told(row)}, t
	}
	c.history.SaveVoted(voted)
	c.enact(healths, transitions)
	c.retellZones(affected)
	c.history.SaveVoted(over)
}

// ended says that the votes decide again.
func (e *effect) ended(how string) string {
	if e.before == nil { // it is not known any more
		return "no longer overridden"
	}
	return "no longer " + e.before.done() + " (" + how + ")"
}
