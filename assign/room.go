package assign

import (
	"slices"

	"hdsd/assign/internal/quota"
)

// room tracks each checker's load and its remaining room, by slot.
type room struct {
	loads    []int32 // endpoints it checks, as a substitute too
	spares   []int32 // endpoints it checks as a substitute
	rates    []int64 // cost of its endpoints: checks in 1,000 seconds
	ceilings []int64
	capped   int  // number of checkers with a ceiling
	freed    bool // a checker with a ceiling has more room than before
	quotas   *quota.Table
}

// open resets the account of a checker that has a new seat.
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

// seated returns the number of endpoints at which a checker has a seat.
func (r *room) seated(s int32) int32 { return r.loads[s] - r.spares[s] }

// hasCeilings reports whether any checker has a ceiling.
func (r *room) hasCeilings() bool { return r.capped > 0 }

// fits reports whether a checker has room for a cost below its ceiling.
func (r *room) fits(s int32, cost int64) bool {
	return r.ceilings[s] == quota.Unlimited || cost == 0 || r.rates[s]+cost <= r.ceilings[s]
}

// takes reports whether a checker has room for a unit below a quota and its ceiling.
func (r *room) takes(s int32, u *unit, q quota.Level) bool {
	return r.loads[s]+u.size() <= r.quotas.Of(q, s) && r.fits(s, u.cost())
}

// quota returns one of a checker's quotas.
func (r *room) quota(q quota.Level, s int32) int32 { return r.quotas.Of(q, s) }

// above returns a function that reports whether a checker is above a quota.
func (r *room) above(q quota.Level) func(s int32) bool {
	above := r.quotas.Above(q)
	return func(s int32) bool { return above(s, r.loads[s]) }
}

// aboveCeiling reports whether a checker is above its ceiling.
func (r *room) aboveCeiling(s int32) bool { return r.rates[s] > r.ceilings[s] }

// leeway returns the room of a checker below its ceiling.
func (r *room) leeway(s int32) int64 {
	if r.ceilings[s] == quota.Unlimited {
		return quota.Unlimited
	}
	return r.ceilings[s] - r.rates[s]
}

// book adds endpoints to a checker's load, or removes them if negative. Each costs
// rate. It reports whether the checker has more room below a ceiling than before.
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

// resetFreed reports whether a checker with a ceiling has gained room since the last call.
func (r *room) resetFreed() bool {
	freed := r.freed
	r.freed = false
	return freed
}

// bookSpare adds endpoints to a checker's substitute work.
func (r *room) bookSpare(s int32, endpoints int32) { r.spares[s] += endpoints }

// clear removes all seats of a checker.
func (r *room) clear(s int32) { r.loads[s], r.rates[s] = 0, 0 }

// idle reports whether no checker has any work.
func (r *room) idle() bool {
	return !slices.ContainsFunc(r.loads, func(n int32) bool { return n > 0 })
}
