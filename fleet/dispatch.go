package fleet

import (
	"iter"
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// gathering is the part of a report interval in which changes of the plan are gathered. When
// many checkers come or go one after the other, each of them moves endpoints of dozens of
// others: without gathering, those would get dozens of specifiers.
const gathering = 4

// Dispatch ends handovers and lists the specifiers to make: at once after some calm, otherwise
// at the end of the gathering time.
func (p *Plan) Dispatch(now time.Time) Effects {
	out := Effects{}
	if now.Before(p.nextSpecify) {
		return out
	}
	p.finishHandovers(now, &out)
	if p.pending {
		p.nextSpecify, p.pending = now.Add(p.options.Report/gathering), false
		for _, id := range slices.Sorted(maps.Keys(p.changed)) {
			if p.changed[id] {
				out.Specify = append(out.Specify, id)
			}
		}
		out.Rows = p.Rows()
	}
	return out
}

// due returns the time at which to make the pending specifiers; zero: none is pending.
func (p *Plan) due() time.Time {
	if !p.pending {
		return time.Time{}
	}
	return p.nextSpecify
}

// Work is the endpoints that a checker checks.
type Work struct {
	Endpoints iter.Seq[health.EndpointID] // by the plan; valid until it changes
	Count     int                         // of Endpoints
	Handovers []health.EndpointID         // also checked; includes the part of a newcomer's sample that no other checker checks
	Sample    []health.EndpointID         // the rest of the sample: its votes do not count
	Ended     []health.EndpointID         // handovers that the checker cannot continue: to unassign
}

// work returns a checker's work, for the specifier being made.
func (p *Plan) work(k *health.Checker) Work {
	w := Work{Endpoints: p.planner.Endpoints(k.ID), Count: p.planner.Load(k.ID)}
	for _, id := range p.handovers.endpoints(k.ID) {
		if p.lookup.CanCheck(k, id) {
			w.Handovers = append(w.Handovers, id)
			continue
		}
		p.handovers.end(id, k.ID)
		w.Ended = append(w.Ended, id)
	}
	for _, id := range sortedKeys(p.samples[k.ID]) {
		switch {
		case p.handovers.has(k.ID, id) || !p.lookup.CanCheck(k, id):
		case p.samples[k.ID][id]:
			w.Handovers = append(w.Handovers, id)
		default:
			w.Sample = append(w.Sample, id)
		}
	}
	return w
}

// specified notes that the specifier of a checker is made, or is not needed.
func (p *Plan) specified(checker string) {
	if p.changed[checker] {
		p.changed[checker] = false
	}
}
