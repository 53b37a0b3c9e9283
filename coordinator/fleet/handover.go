package fleet

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// handovers are the endpoints that checkers go on checking though the plan has
// given them to others: by checker, with the time at which that ends in any case.
type handovers map[string]map[health.EndpointID]time.Time

// longestHandover bounds the wait for new checkers that are never believed.
const longestHandover = time.Minute

// end ends a handover, and reports whether there was one.
func (h handovers) end(id health.EndpointID, checker string) bool {
	if _, ok := h[checker][id]; !ok {
		return false
	}
	if delete(h[checker], id); len(h[checker]) == 0 {
		delete(h, checker)
	}
	return true
}

// handOver begins a handover, and reports whether the checker is able to go on.
func (p *Plan) handOver(now time.Time, id health.EndpointID, k *health.Checker) bool {
	if !p.lookup.CanCheck(k, id) {
		return false
	}
	if p.handovers[k.ID] == nil {
		p.handovers[k.ID] = map[health.EndpointID]time.Time{}
	}
	p.handovers[k.ID][id] = now.Add(longestHandover)
	return true
}

// endHandovers ends all handovers of a checker that comes or goes.
func (p *Plan) endHandovers(checker string, out *Effects) {
	out.unassign(checker, slices.Sorted(maps.Keys(p.handovers[checker])))
	delete(p.handovers, checker)
}

// finishHandovers ends the handovers of endpoints whose new checkers are
// believed: those of one checker all at once, unless that takes long.
func (p *Plan) finishHandovers(now time.Time, out *Effects) {
	for checker, endpoints := range p.handovers {
		var over []health.EndpointID
		late := false
		for id, until := range endpoints {
			if !now.Before(until) || p.takenOver(id) {
				over = append(over, id)
			}
			late = late || until.Sub(now) < longestHandover-p.options.Grace
		}
		if len(over) == 0 || len(over) < len(endpoints) && !late {
			continue
		}
		for _, id := range over {
			p.handovers.end(id, checker)
		}
		out.unassign(checker, over)
		p.note(checker)
	}
}

// takenOver reports whether all checkers of an endpoint that are present are
// believed about it.
func (p *Plan) takenOver(id health.EndpointID) bool {
	for _, checker := range p.planner.Checkers(id) {
		if p.present(checker) != nil && !p.lookup.Believes(id, checker) {
			return false
		}
	}
	return true
}
