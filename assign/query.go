package assign

import (
	"iter"
	"maps"
	"slices"

	"hdsd/health"
)

// Checkers are those that check an endpoint, substitutes and checkers that are
// not live included, sorted.
func (p *Planner) Checkers(id health.EndpointID) []string {
	if !p.known(id) {
		return nil
	}
	var ids []string
	for _, s := range p.units[p.endpoints[id].unit].all() {
		ids = append(ids, p.slots[s].id)
	}
	slices.Sort(ids)
	return ids
}

// Endpoints are what a checker checks, in no particular order. The plan must
// not be changed meanwhile.
func (p *Planner) Endpoints(checker string) iter.Seq[health.EndpointID] {
	return func(yield func(health.EndpointID) bool) {
		s, ok := p.index[checker]
		if !ok {
			return
		}
		for _, i := range p.slots[s].units {
			for _, id := range p.units[i].members {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// Load is how many endpoints a checker checks.
func (p *Planner) Load(checker string) int {
	if s, ok := p.index[checker]; ok {
		return int(p.load[s])
	}
	return 0
}

// Digest is a sum over the plan: equal plans have equal digests, on every
// machine and however they came about.
func (p *Planner) Digest() uint64 { return p.digest }

// Plan is what to store of the named checkers, or of all: the endpoints at
// which they have a seat, sorted. Substitutes have none. A name without a seat
// in the fleet has no entry, one without endpoints an empty one.
func (p *Planner) Plan(checkers ...string) map[string][]health.Hash {
	if len(checkers) == 0 {
		checkers = slices.Collect(maps.Keys(p.index))
	}
	plan := make(map[string][]health.Hash, len(checkers))
	for _, id := range checkers {
		s, ok := p.index[id]
		if !ok {
			continue
		}
		hashes := make([]health.Hash, 0, p.load[s])
		for _, i := range p.slots[s].units {
			if u := &p.units[i]; contains(u.seats, s) {
				for _, e := range u.members {
					hashes = append(hashes, health.Hash(p.endpoints[e].lo))
				}
			}
		}
		slices.Sort(hashes)
		plan[id] = hashes
	}
	return plan
}

// Stats are figures of a plan.
type Stats struct {
	Checkers, Live  int // with a seat; those of them that are live
	Endpoints       int
	Checks          int // pairs of endpoint and checker
	Substitutes     int // of these, those in place of a lost one
	Uncheckable     int // endpoints without any checker
	UnderReplicated int // endpoints with some, but fewer than asked for
	Units           int
	MaxLoad         int // of one checker
}

// Stats counts; it looks at every unit.
func (p *Planner) Stats() Stats {
	st := Stats{Checkers: p.seated}
	for s := range p.slots {
		st.Checks += int(p.load[s])
		st.Substitutes += int(p.spare[s])
		st.MaxLoad = max(st.MaxLoad, int(p.load[s]))
		if p.live[s] {
			st.Live++
		}
	}
	for k := range p.kinds {
		at := &p.kinds[k]
		st.Endpoints += at.count
		st.Units += len(at.leaves)
		for _, i := range at.leaves {
			switch u := &p.units[i]; {
			case len(u.seats) == 0:
				st.Uncheckable += len(u.members)
			case len(u.seats) < int(at.redundancy):
				st.UnderReplicated += len(u.members)
			}
		}
	}
	return st
}
