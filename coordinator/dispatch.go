package coordinator

import (
	"maps"
	"slices"
	"time"

	"hdsd/hds"
	"hdsd/health"
)

// gathering is the part of a report interval in which the checkers whose plan
// has changed are gathered: when many come or go one after the other, each move
// touches dozens of others, which would be sent dozens of specifiers.
const gathering = 4

// dispatch is what the plan has in store for checkers.
type dispatch struct {
	moved   map[string]bool // checkers whose plan is to be stored; true: and their specifier made again
	next    time.Time       // when specifiers may next be made
	pending bool            // some are to be made
}

// move notes that the plan of a checker has changed.
func (d *dispatch) move(id string) {
	d.moved[id] = true
	d.pending = true
}

// told notes that the specifier of a checker was made.
func (d *dispatch) told(id string) {
	if d.moved[id] {
		d.moved[id] = false
	}
}

// behind are the checkers that were not sent all of their plan as it is now: it
// is gathered still, or others try it first. What is in quarantine is no part of
// the plan.
func (c *core) behind() map[string]bool {
	found := map[string]bool{}
	for id, known := range c.checkers {
		if c.dispatch.moved[id] || slices.ContainsFunc(known.withheld, func(name string) bool { return !c.canary.Quarantined(name) }) {
			found[id] = true
		}
	}
	return found
}

// hold notes that a cluster, or some of it, is held back; those of one cluster
// come mostly together.
func (k *checker) hold(name string) {
	if n := len(k.withheld); n == 0 || k.withheld[n-1] != name {
		k.withheld = append(k.withheld, name)
	}
}

// specifierState says how a checker fares with what it is to check.
func specifierState(s *hds.State, behind bool) string {
	if behind {
		return hds.NotSent
	}
	return s.Specifier
}

// send makes the specifiers that are to be made: at once after some calm,
// else when the time to gather is over.
func (c *core) send(now time.Time) {
	d := &c.dispatch
	if !d.pending || now.Before(d.next) {
		return
	}
	d.next, d.pending = now.Add(c.timing.report/gathering), false
	for _, id := range slices.Sorted(maps.Keys(d.moved)) { // the first becomes the canary
		if d.moved[id] {
			c.instruct(now, id)
		}
	}
	c.storePlan()
}

// storePlan stores the rows of the checkers whose plan has changed.
func (c *core) storePlan() {
	moved := c.dispatch.moved
	if len(moved) == 0 { // of none, Plan would give all
		return
	}
	c.history.SavePlan(c.planner.Plan(slices.Collect(maps.Keys(moved))...))
	clear(moved)
}

// unstorePlan forgets the rows of checkers that have no seat any more.
func (c *core) unstorePlan(left []string) {
	if len(left) == 0 {
		return
	}
	rows := make(map[string][]health.Hash, len(left))
	for _, id := range left {
		rows[id] = nil
	}
	c.history.SavePlan(rows)
}
