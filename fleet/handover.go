package fleet

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// handovers are endpoints that checkers still check although the plan gives them to others, by
// checker.
type handovers map[string]*handover

// handover is the endpoints that one checker hands over.
type handover struct {
	deadlines map[health.EndpointID]time.Time // latest end of each endpoint's handover
	look      time.Time                       // when to look again whether it is over
	partly    time.Time                       // when it may begin to end endpoint by endpoint
}

// longestHandover bounds the wait for new checkers that are never believed.
const longestHandover = time.Minute

// has reports whether a checker hands an endpoint over.
func (h handovers) has(checker string, id health.EndpointID) bool {
	if h[checker] == nil {
		return false
	}
	_, ok := h[checker].deadlines[id]
	return ok
}

// endpoints lists the endpoints that a checker hands over, sorted.
func (h handovers) endpoints(checker string) []health.EndpointID {
	if h[checker] == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(h[checker].deadlines))
}

// end ends a handover, and reports whether there was one.
func (h handovers) end(id health.EndpointID, checker string) bool {
	if !h.has(checker, id) {
		return false
	}
	if delete(h[checker].deadlines, id); len(h[checker].deadlines) == 0 {
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
		p.handovers[k.ID] = &handover{deadlines: map[health.EndpointID]time.Time{}, partly: now.Add(p.options.Grace)}
	}
	p.handovers[k.ID].deadlines[id] = now.Add(longestHandover)
	return true
}

// endHandovers ends all handovers of a checker that comes or goes.
func (p *Plan) endHandovers(checker string, out *Effects) {
	out.unassign(checker, p.handovers.endpoints(checker))
	delete(p.handovers, checker)
}

// finishHandovers ends the handovers of endpoints whose new checkers are believed: those of one
// checker all at once, unless that takes long. Then it ends the finished ones, once in a grace
// period, since each time costs a specifier and a look at all of them.
func (p *Plan) finishHandovers(now time.Time, out *Effects) {
	for _, checker := range sortedKeys(p.handovers) {
		h := p.handovers[checker]
		if now.Before(h.look) {
			continue
		}
		h.look = now.Add(p.options.Report / gathering)
		partly := !now.Before(h.partly)
		if partly {
			h.partly = now.Add(p.options.Grace)
		}
		over := p.over(now, h, partly)
		if len(over) == 0 {
			continue
		}
		for _, id := range over {
			p.handovers.end(id, checker)
		}
		out.unassign(checker, over)
		p.note(checker)
	}
}

// over lists, in order, the endpoints whose handover is over. Unless the handover may end
// partly, it lists all of them or none.
func (p *Plan) over(now time.Time, h *handover, partly bool) (over []health.EndpointID) {
	for id, deadline := range h.deadlines {
		switch {
		case !now.Before(deadline) || p.takenOver(id):
			over = append(over, id)
		case !partly:
			return nil
		}
	}
	slices.Sort(over)
	return over
}

// takenOver reports whether all present checkers of an endpoint are believed about it.
func (p *Plan) takenOver(id health.EndpointID) bool {
	for checker := range p.planner.EachChecker(id) {
		if p.present(checker) != nil && !p.lookup.Believes(id, checker) {
			return false
		}
	}
	return true
}
