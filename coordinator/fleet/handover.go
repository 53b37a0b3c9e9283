package fleet

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// handovers are the endpoints that checkers go on checking though the plan has
// given them to others, by checker.
type handovers map[string]*handover

// handover is what one checker hands over.
type handover struct {
	until  map[health.EndpointID]time.Time // after which that of an endpoint ends in any case
	look   time.Time                       // when to look next whether it is over
	partly time.Time                       // from when on it may end for some of them
}

// longestHandover bounds the wait for new checkers that are never believed.
const longestHandover = time.Minute

// has reports whether a checker hands an endpoint over.
func (h handovers) has(checker string, id health.EndpointID) bool {
	if h[checker] == nil {
		return false
	}
	_, has := h[checker].until[id]
	return has
}

// of lists what a checker hands over, sorted.
func (h handovers) of(checker string) []health.EndpointID {
	if h[checker] == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(h[checker].until))
}

// end ends a handover, and reports whether there was one.
func (h handovers) end(id health.EndpointID, checker string) bool {
	if !h.has(checker, id) {
		return false
	}
	if delete(h[checker].until, id); len(h[checker].until) == 0 {
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
		p.handovers[k.ID] = &handover{until: map[health.EndpointID]time.Time{}, partly: now.Add(p.options.Grace)}
	}
	p.handovers[k.ID].until[id] = now.Add(longestHandover)
	return true
}

// endHandovers ends all handovers of a checker that comes or goes.
func (p *Plan) endHandovers(checker string, out *Effects) {
	out.unassign(checker, p.handovers.of(checker))
	delete(p.handovers, checker)
}

// finishHandovers ends the handovers of endpoints whose new checkers are
// believed: those of one checker all at once, unless that takes long. Then it ends
// those that are over, once in a grace period: each time costs a specifier, and a look
// at all of them.
func (p *Plan) finishHandovers(now time.Time, out *Effects) {
	for checker, h := range p.handovers {
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

// over lists for which endpoints a handover is over: for all of them or, unless it may end
// partly, for none.
func (p *Plan) over(now time.Time, h *handover, partly bool) (over []health.EndpointID) {
	for id, until := range h.until {
		switch {
		case !now.Before(until) || p.takenOver(id):
			over = append(over, id)
		case !partly:
			return nil
		}
	}
	return over
}

// takenOver reports whether all checkers of an endpoint that are present are
// believed about it.
func (p *Plan) takenOver(id health.EndpointID) bool {
	for checker := range p.planner.EachChecker(id) {
		if p.present(checker) != nil && !p.lookup.Believes(id, checker) {
			return false
		}
	}
	return true
}
