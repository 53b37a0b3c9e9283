package assign

import (
	"iter"
	"slices"

	"hdsd/assign/internal/quota"
	"hdsd/health"
)

// Checkers lists the checkers of an endpoint, sorted. It includes substitutes and
// checkers that are not live.
func (p *Planner) Checkers(id health.EndpointID) []string {
	return slices.Sorted(p.EachChecker(id))
}

// EachChecker yields the checkers of an endpoint, in no particular order. The plan must not
// change meanwhile.
func (p *Planner) EachChecker(id health.EndpointID) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !p.endpoints.has(id) {
			return
		}
		for _, s := range p.unitOf(id).current() {
			if !yield(p.fleet.id(s)) {
				return
			}
		}
	}
}

// Endpoints lists the endpoints that a checker checks, in no particular order. The
// plan must not change meanwhile.
func (p *Planner) Endpoints(checker string) iter.Seq[health.EndpointID] {
	return func(yield func(health.EndpointID) bool) {
		s, ok := p.fleet.find(checker)
		if !ok {
			return
		}
		for _, i := range p.seats.unitsOf(s) {
			for _, id := range p.seats.unit(i).members {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// Load returns the number of endpoints that a checker checks.
func (p *Planner) Load(checker string) int {
	if s, ok := p.fleet.find(checker); ok {
		return int(p.room.load(s))
	}
	return 0
}

// Checker holds the plan's figures for a checker.
type Checker struct {
	Endpoints int    // endpoints that it checks
	Share     int    // endpoints that it should check, by its weight
	Rate      int64  // cost of its endpoints: checks in 1,000 seconds
	Digest    uint64 // its part of the plan's digest
}

// Checker returns a checker's figures, all zero if it has no seat.
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

// Seats yields each checker with the number of endpoints where it has a seat, in no
// particular order. The plan must not change meanwhile.
func (p *Planner) Seats() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for s := range int32(p.fleet.len()) {
			if p.fleet.isSeated(s) && !yield(p.fleet.id(s), int(p.room.seated(s))) {
				return
			}
		}
	}
}

// Short counts the endpoints that have too few checkers only because the able
// checkers have no room.
func (p *Planner) Short() int {
	sum := 0
	if !p.room.hasCeilings() {
		return 0
	}
	for _, i := range p.agenda.review() {
		if u := p.seats.unit(i); u.short() && p.shortage(u) == NoRoom {
			sum += len(u.members)
		}
	}
	return sum
}

// Shortage returns the number of checkers an endpoint lacks, and the reason.
func (p *Planner) Shortage(id health.EndpointID) (missing int, reason Reason) {
	if !p.endpoints.has(id) {
		return 0, Enough
	}
	u := p.unitOf(id)
	if !u.short() {
		return 0, Enough
	}
	return u.kind.wants() - len(u.seats), p.shortage(u)
}

// shortage returns the reason why a unit has too few seats.
func (p *Planner) shortage(u *unit) Reason {
	if p.waiting {
		return Waiting
	}
	return p.needs.shortage(u)
}

// unitOf returns the unit of a known endpoint.
func (p *Planner) unitOf(id health.EndpointID) *unit { return p.seats.unit(p.endpoints.unit(id)) }

// Digest returns a sum over the plan. Equal plans have equal digests, on every
// machine and whatever their history.
func (p *Planner) Digest() uint64 { return p.journal.digest() }

// Plan returns what to store for the named checkers, or for all: the endpoints at
// which each has a seat, sorted. Substitutes have no seat. A name that is not in the
// fleet has no entry. A checker without endpoints has an empty entry.
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
		for _, i := range p.seats.unitsOf(s) {
			if u := p.seats.unit(i); u.seated(s) {
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
	Checkers, Live  int // checkers with a seat; live ones among them
	Endpoints       int
	Checks          int // pairs of endpoint and checker
	Substitutes     int // pairs in which the checker is a substitute
	Uncheckable     int // endpoints without any checker
	UnderReplicated int // endpoints with some, but fewer than asked for
	NoRoom          int // endpoints that are uncheckable or under-replicated only because able checkers are at their ceilings
	Units           int
	MaxLoad         int // most endpoints at one checker
}

// Stats computes the figures; it looks at every unit.
func (p *Planner) Stats() Stats {
	st := Stats{Checkers: p.fleet.size(), Live: p.fleet.alive()}
	for s := range int32(p.fleet.len()) {
		st.Checks += int(p.room.load(s))
		st.Substitutes += int(p.room.spare(s))
		st.MaxLoad = max(st.MaxLoad, int(p.room.load(s)))
	}
	for _, k := range p.kinds.inOrder() {
		st.Endpoints += k.count
		for i := range p.forest.unitsOf(k) {
			u := p.seats.unit(i)
			st.Units++
			switch {
			case len(u.seats) == 0:
				st.Uncheckable += len(u.members)
			case u.short():
				st.UnderReplicated += len(u.members)
			default:
				continue
			}
			if p.shortage(u) == NoRoom {
				st.NoRoom += len(u.members)
			}
		}
	}
	return st
}
