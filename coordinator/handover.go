package coordinator

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// handovers are the endpoints that checkers go on checking though the plan has
// given them to others, until these are believed: by checker, with the time at
// which that ends in any case.
type handovers map[string]map[health.EndpointID]time.Time

// longestHandover is for whom the new checkers never say anything to believe.
const longestHandover = time.Minute

// keep begins a handover, and tells whether it did: a checker that is gone or
// silent has nothing to hand over.
func (c *core) keep(now time.Time, id health.EndpointID, checker string) bool {
	known := c.checkers[checker]
	if known == nil || !known.connected || c.silent[checker] != nil || !c.may(known, id) {
		return false
	}
	if c.handovers[checker] == nil {
		c.handovers[checker] = map[health.EndpointID]time.Time{}
	}
	c.handovers[checker][id] = now.Add(longestHandover)
	return true
}

// may tells whether a checker is able to check an endpoint, and reaches it.
func (c *core) may(known *checker, id health.EndpointID) bool {
	row := &c.table.rows[id]
	return row.cluster != nil && row.index != none &&
		known.Abilities.Has(row.cluster.Checked.Needs...) && row.cluster.Reach.Includes(&known.Checker)
}

// kept are the endpoints that a checker still has to check beside those of the
// plan. What has changed so that it must not is let go.
func (c *core) kept(now time.Time, known *checker) []health.EndpointID {
	for id := range c.handovers[known.ID] {
		if !c.may(known, id) {
			c.handovers.end(id, known.ID)
			c.judge.Unassign(now, id, known.ID)
		}
	}
	return slices.Sorted(maps.Keys(c.handovers[known.ID]))
}

// end ends a handover, and tells whether there was one.
func (h handovers) end(id health.EndpointID, checker string) bool {
	if _, ok := h[checker][id]; !ok {
		return false
	}
	if delete(h[checker], id); len(h[checker]) == 0 {
		delete(h, checker)
	}
	return true
}

// letGo ends all handovers of a checker that goes or comes.
func (c *core) letGo(now time.Time, checker string) {
	for id := range c.handovers[checker] {
		c.judge.Unassign(now, id, checker)
	}
	delete(c.handovers, checker)
}

// handOver ends the handovers of what others are believed about, shortly before
// specifiers are made: of a checker all at once, if that does not take long.
func (c *core) handOver(now time.Time) {
	if now.Before(c.dispatch.next) {
		return
	}
	for checker, endpoints := range c.handovers {
		var over []health.EndpointID
		late := false
		for id, until := range endpoints {
			if !now.Before(until) || c.takenOver(id) {
				over = append(over, id)
			}
			late = late || until.Sub(now) < longestHandover-c.timing.grace
		}
		if len(over) == 0 || len(over) < len(endpoints) && !late {
			continue
		}
		for _, id := range over {
			c.handovers.end(id, checker)
			c.judge.Unassign(now, id, checker)
		}
		c.dispatch.move(checker)
	}
}

// takenOver tells whether all who are to check an endpoint, and can, are
// believed about it.
func (c *core) takenOver(id health.EndpointID) bool {
	for _, checker := range c.planner.Checkers(id) {
		known := c.checkers[checker]
		if known != nil && known.connected && c.silent[checker] == nil && !c.judge.Believes(id, checker) {
			return false
		}
	}
	return true
}
