package assign

import (
	"iter"
	"maps"
	"slices"

	"hdsd/assign/internal/quota"
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

// Checker is what the plan has of a checker.
type Checker struct {
	Endpoints int    // that it checks
	Share     int    // that it should check, by its weight
	Rate      int64  // what they cost: checks in 1,000 seconds
	Digest    uint64 // its part of the plan's digest
}

// Checker gives a checker's figures; all zero if it has no seat.
func (p *Planner) Checker(id string) Checker {
	s, ok := p.index[id]
	if !ok {
		return Checker{}
	}
	share := int32(0)
	if p.slots[s].known {
		share = p.quotas.Of(quota.Share, s)
	}
	return Checker{int(p.load[s]), int(share), p.rate[s], p.part[s]}
}

// Seats gives the checkers with the number of endpoints at which they have a seat,
// in no particular order. The plan must not be changed meanwhile.
func (p *Planner) Seats() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for s := range p.slots {
			if p.slots[s].seated && !yield(p.slots[s].id, int(p.load[s]-p.spare[s])) {
				return
			}
		}
	}
}

// Short is how many endpoints have fewer checkers than they should, or none,
// only since those that are able have no room.
func (p *Planner) Short() int {
	sum := 0
	if p.ceilings == 0 {
		return 0
	}
	for _, i := range p.review() {
		if u := &p.units[i]; len(u.seats) < int(p.kinds[u.kind].redundancy) && p.reason(u) == NoRoom {
			sum += len(u.members)
		}
	}
	return sum
}

// Shortage tells how many checkers an endpoint lacks, and why.
func (p *Planner) Shortage(id health.EndpointID) (missing int, why Reason) {
	if !p.known(id) {
		return 0, Enough
	}
	u := &p.units[p.endpoints[id].unit]
	missing = int(p.kinds[u.kind].redundancy) - len(u.seats)
	if missing <= 0 {
		return 0, Enough
	}
	return missing, p.reason(u)
}

// reason is why a unit has too few seats.
func (p *Planner) reason(u *unit) Reason {
	if p.held || p.settling {
		return Waiting
	}
	c, able, near := p.classOf(u), 0, 0
	for z := range c.pools {
		able += len(c.pools[z])
		if p.tier(u, int32(z)) != never {
			near += len(c.pools[z])
		}
	}
	others := p.alive
	for _, s := range u.now() {
		if p.live[s] {
			able--
			near--
			others--
		}
	}
	switch {
	case others == 0:
		return NoOthers
	case near > 0:
		return NoRoom
	case able > 0:
		return TooFar
	}
	return TooFew
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
					hashes = append(hashes, health.Hash(p.endpoints[e].Lo))
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
	NoRoom          int // of these two, those that only lack a checker below its ceiling
	Units           int
	MaxLoad         int // of one checker
}

// Stats counts; it looks at every unit.
func (p *Planner) Stats() Stats {
	st := Stats{Checkers: p.seated, Live: p.alive}
	for s := range p.slots {
		st.Checks += int(p.load[s])
		st.Substitutes += int(p.spare[s])
		st.MaxLoad = max(st.MaxLoad, int(p.load[s]))
	}
	for k := range p.kinds {
		at := &p.kinds[k]
		st.Endpoints += at.count
		for i := range p.unitsOf(int32(k)) {
			u := &p.units[i]
			st.Units++
			switch {
			case len(u.seats) == 0:
				st.Uncheckable += len(u.members)
			case len(u.seats) < int(at.redundancy):
				st.UnderReplicated += len(u.members)
			default:
				continue
			}
			if p.reason(u) == NoRoom {
				st.NoRoom += len(u.members)
			}
		}
	}
	return st
}
