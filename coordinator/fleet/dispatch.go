package fleet

import (
	"iter"
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// gathering is the part of a report interval in which changes of the plan are
// gathered. When many checkers come or go one after the other, each of them moves
// endpoints of dozens of others, which would be sent dozens of specifiers.
const gathering = 4

// Dispatch ends handovers and lists the specifiers to make: at once after some
// calm, else when the time to gather is over.
func (p *Plan) Dispatch(now time.Time) Effects {
	out := Effects{}
	if now.Before(p.next) {
		return out
	}
	p.finishHandovers(now, &out)
	if p.pending {
		p.next, p.pending = now.Add(p.options.Report/gathering), false
		for _, id := range slices.Sorted(maps.Keys(p.changed)) {
			if p.changed[id] {
				out.Specify = append(out.Specify, id)
			}
		}
		out.Rows = p.Rows()
	}
	return out
}

// due says when the specifiers that are to be made may be; zero: none are.
func (p *Plan) due() time.Time {
	if !p.pending {
		return time.Time{}
	}
	return p.next
}

// Work is what a checker has to check.
type Work struct {
	Endpoints iter.Seq[health.EndpointID] // by the plan; valid until that changes
	Count     int                         // of Endpoints
	Handovers []health.EndpointID         // in addition, and of a newcomer's sample that which nobody else checks
	Sample    []health.EndpointID         // the rest of that: the votes on it do not count
	Ended     []health.EndpointID         // handovers that the checker is not able to go on with: to unassign
}

// work returns what a checker has to check, for a specifier that is made now.
func (p *Plan) work(k *health.Checker) Work {
	w := Work{Endpoints: p.planner.Endpoints(k.ID), Count: p.planner.Load(k.ID)}
	for _, id := range p.handovers.of(k.ID) {
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
