package assign

import (
	"iter"
	"slices"

	"hdsd/assign/internal/quota"
	"hdsd/health"
)

// Checkers lists those that check an endpoint, substitutes and checkers that are
// not live included, sorted.
func (p *Planner) Checkers(id health.EndpointID) []string {
	if !p.endpoints.has(id) {
		return nil
	}
	var ids []string
	for _, s := range p.unitOf(id).all() {
		ids = append(ids, p.fleet.id(s))
	}
	slices.Sort(ids)
	return ids
}

// Endpoints lists what a checker checks, in no particular order. The plan must not
// be changed meanwhile.
func (p *Planner) Endpoints(checker string) iter.Seq[health.EndpointID] {
	return func(yield func(health.EndpointID) bool) {
		s, ok := p.fleet.find(checker)
		if !ok {
			return
		}
		for _, i := range p.seats.of(s) {
			for _, id := range p.seats.at(i).members {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// Load is how many endpoints a checker checks.
func (p *Planner) Load(checker string) int {
	if s, ok := p.fleet.find(checker); ok {
		return int(p.room.load(s))
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

// Checker returns a checker's figures; all zero if it has no seat.
func (p *Planner) Checker(id string) Checker {
	s, ok := p.fleet.find(id)
	if !ok {
		return Checker{}
	}
	share := int32(0)
	if p.fleet.isKnown(s) {
		share = p.room.quota(quota.Share, s)
	}
	return Checker{int(p.room.load(s)), int(share), p.room.rate(s), p.journal.digestOf(s)}
}

// Seats lists the checkers with the number of endpoints at which they have a seat,
// in no particular order. The plan must not be changed meanwhile.
func (p *Planner) Seats() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for s := range int32(p.fleet.len()) {
			if p.fleet.isSeated(s) && !yield(p.fleet.id(s), int(p.room.own(s))) {
				return
			}
		}
	}
}

// Short counts the endpoints that have fewer checkers than they should, or none,
// only because those that are able have no room.
func (p *Planner) Short() int {
	sum := 0
	if !p.room.hasCeilings() {
		return 0
	}
	for _, i := range p.agenda.review() {
		if u := p.seats.at(i); u.short() && p.why(u) == NoRoom {
			sum += len(u.members)
		}
	}
	return sum
}

// Shortage tells how many checkers an endpoint lacks, and why.
func (p *Planner) Shortage(id health.EndpointID) (missing int, why Reason) {
	if !p.endpoints.has(id) {
		return 0, Enough
	}
	u := p.unitOf(id)
	if !u.short() {
		return 0, Enough
	}
	return u.kind.wants() - len(u.seats), p.why(u)
}

// why is the reason for which a unit has too few seats.
func (p *Planner) why(u *unit) Reason {
	if p.waiting {
		return Waiting
	}
	return p.needs.why(u)
}

// unitOf is the unit of an endpoint that is known.
func (p *Planner) unitOf(id health.EndpointID) *unit { return p.seats.at(p.endpoints.unit(id)) }

// Digest is a sum over the plan: equal plans have equal digests, on every machine
// and however they came about.
func (p *Planner) Digest() uint64 { return p.journal.digest() }

// Plan returns what to store of the named checkers, or of all: the endpoints at
// which they have a seat, sorted. Substitutes have none. A name without a seat in
// the fleet has no entry, one without endpoints an empty one.
func (p *Planner) Plan(checkers ...string) map[string][]health.Hash {
	if len(checkers) == 0 {
		checkers = p.fleet.ids()
	}
	plan := make(map[string][]health.Hash, len(checkers))
	for _, id := range checkers {
		s, ok := p.fleet.find(id)
		if !ok {
			continue
		}
		hashes := make([]health.Hash, 0, p.room.load(s))
		for _, i := range p.seats.of(s) {
			if u := p.seats.at(i); u.seated(s) {
				for _, e := range u.members {
					hashes = append(hashes, health.Hash(p.endpoints.hash(e)))
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
	st := Stats{Checkers: p.fleet.size(), Live: p.fleet.alive()}
	for s := range int32(p.fleet.len()) {
		st.Checks += int(p.room.load(s))
		st.Substitutes += int(p.room.spare(s))
		st.MaxLoad = max(st.MaxLoad, int(p.room.load(s)))
	}
	for _, k := range p.kinds.inOrder() {
		st.Endpoints += k.count
		for i := range p.forest.all(k) {
			u := p.seats.at(i)
			st.Units++
			switch {
			case len(u.seats) == 0:
				st.Uncheckable += len(u.members)
			case u.short():
				st.UnderReplicated += len(u.members)
			default:
				continue
			}
			if p.why(u) == NoRoom {
				st.NoRoom += len(u.members)
			}
		}
	}
	return st
}
