package assign

import (
	"slices"

	"hdsd/assign/internal/quota"
)

// room is what each checker has, and how much more it can take, by slot.
type room struct {
	loads    []int32 // endpoints it checks, as a substitute too
	spares   []int32 // those as a substitute
	rates    []int64 // what they cost: checks in 1,000 seconds
	ceilings []int64
	capped   int  // how many checkers have a ceiling
	freed    bool // one of these has more room than before
	quotas   *quota.Table
}

// open begins the account of a checker that has a new seat.
func (r *room) open(s int32) {
	for len(r.loads) <= int(s) {
		r.loads, r.spares = append(r.loads, 0), append(r.spares, 0)
		r.rates, r.ceilings = append(r.rates, 0), append(r.ceilings, quota.Unlimited)
	}
	r.limit(s, quota.Unlimited)
}

// limit sets a checker's ceiling.
func (r *room) limit(s int32, ceiling int64) {
	if r.ceilings[s] != quota.Unlimited {
		r.capped--
	}
	if ceiling != quota.Unlimited {
		r.capped++
	}
	r.ceilings[s] = ceiling
}

func (r *room) load(s int32) int32    { return r.loads[s] }
func (r *room) spare(s int32) int32   { return r.spares[s] }
func (r *room) rate(s int32) int64    { return r.rates[s] }
func (r *room) ceiling(s int32) int64 { return r.ceilings[s] }

// own is how many endpoints a checker has a seat at.
func (r *room) own(s int32) int32 { return r.loads[s] - r.spares[s] }

// hasCeilings tells whether any checker has a ceiling.
func (r *room) hasCeilings() bool { return r.capped > 0 }

// fits tells whether a checker has room for a cost below its ceiling.
func (r *room) fits(s int32, cost int64) bool {
	return r.ceilings[s] == quota.Unlimited || cost == 0 || r.rates[s]+cost <= r.ceilings[s]
}

// takes tells whether a checker has room for a unit below a quota and its ceiling.
func (r *room) takes(s int32, u *unit, q quota.Level) bool {
	return r.loads[s]+u.size() <= r.quotas.Of(q, s) && r.fits(s, u.cost())
}

// quota is a quota of a checker.
func (r *room) quota(q quota.Level, s int32) int32 { return r.quotas.Of(q, s) }

// above returns a function that tells whether a checker has more than a quota.
func (r *room) above(q quota.Level) func(s int32) bool {
	above := r.quotas.Above(q)
	return func(s int32) bool { return above(s, r.loads[s]) }
}

// over tells whether a checker has more than its ceiling allows.
func (r *room) over(s int32) bool { return r.rates[s] > r.ceilings[s] }

// leeway is the room that a checker has below its ceiling.
func (r *room) leeway(s int32) int64 {
	if r.ceilings[s] == quota.Unlimited {
		return quota.Unlimited
	}
	return r.ceilings[s] - r.rates[s]
}

// book adds endpoints that cost so much each to what a checker has, or takes them
// away. It tells whether the checker has more room below a ceiling than before.
func (r *room) book(s int32, endpoints int32, rate int64) (freed bool) {
	r.loads[s] += endpoints
	if rate == 0 {
		return false
	}
	r.rates[s] += int64(endpoints) * rate
	freed = endpoints < 0 && r.ceilings[s] != quota.Unlimited
	r.freed = r.freed || freed
	return freed
}

// takeFreed tells whether a checker with a ceiling has more room than when it was
// asked last.
func (r *room) takeFreed() bool {
	freed := r.freed
	r.freed = false
	return freed
}

// bookSpare adds endpoints to what a checker has as a substitute.
func (r *room) bookSpare(s int32, endpoints int32) { r.spares[s] += endpoints }

// clear takes all seats of a checker away.
func (r *room) clear(s int32) { r.loads[s], r.rates[s] = 0, 0 }

// idle tells whether no checker has anything.
func (r *room) idle() bool {
	return !slices.ContainsFunc(r.loads, func(n int32) bool { return n > 0 })
}
