package assign

import (
	"math"

	"hdsd/health"
)

// Weights are counted in thousandths, so that all is done in whole numbers and
// so the same on every machine.
const (
	fullWeight  = 1000
	leastWeight = 10
	mostWeight  = 100 * fullWeight
)

// unlimited is the ceiling of a checker that has none.
const unlimited = math.MaxInt64

// capacity is what a checker can take.
type capacity struct {
	weight  int64 // in thousandths
	ceiling int64 // checks in 1,000 seconds
}

func capacityOf(c *health.Checker) capacity {
	is := capacity{fullWeight, unlimited}
	if c.Weight > 0 {
		is.weight = int64(math.Round(min(max(c.Weight*fullWeight, leastWeight), mostWeight)))
	}
	if c.MaxChecksPerSecond > 0 && c.MaxChecksPerSecond < 1e9 { // more than any can do
		is.ceiling = int64(math.Round(c.MaxChecksPerSecond * 1000))
	}
	return is
}

// endow gives a checker its capacity.
func (p *Planner) endow(s int32, to capacity) {
	if p.can[s].ceiling != unlimited {
		p.ceilings--
	}
	if to.ceiling != unlimited {
		p.ceilings++
	}
	p.can[s] = to
}

// cost is what all of a unit's endpoints cost each of its checkers, in checks
// in 1,000 seconds.
func (p *Planner) cost(u *unit) int64 { return int64(u.size()) * p.kinds[u.kind].rate }

// fits tells whether a checker has room for a cost below its ceiling.
func (p *Planner) fits(s int32, cost int64) bool {
	return p.can[s].ceiling == unlimited || cost == 0 || p.rate[s]+cost <= p.can[s].ceiling
}

// over tells whether a checker does more than its ceiling allows.
func (p *Planner) over(s int32) bool { return p.rate[s] > p.can[s].ceiling }

// quota is how many checks a checker of full weight is to have, in 256ths.
type quota int64

const quotaBits = 8

// quotas are how much a checker of full weight is to have, by cohort.
type quotas []quota

// of is what a quota comes to for a checker, rounded up; without quotas, any
// number.
func (p *Planner) of(q quotas, s int32) int32 {
	if q == nil {
		return math.MaxInt32
	}
	return int32(min((int64(q[p.cohort[s]])*p.can[s].weight/fullWeight+1<<quotaBits-1)>>quotaBits, math.MaxInt32))
}

// leeway is the room that a checker has below its ceiling.
func (p *Planner) leeway(s int32) int64 {
	if p.can[s].ceiling == unlimited {
		return unlimited
	}
	return p.can[s].ceiling - p.rate[s]
}

// book puts endpoints of a kind on a checker's books, or takes them off.
func (p *Planner) book(s int32, endpoints int32, k int32) {
	p.load[s] += endpoints
	if rate := p.kinds[k].rate; rate != 0 {
		p.rate[s] += int64(endpoints) * rate
		if endpoints < 0 && p.can[s].ceiling != unlimited {
			p.freed = true
			p.widen(s)
		}
	}
}

// widen notes that a checker has more room below its ceiling.
func (p *Planner) widen(s int32) {
	for i := range p.classes {
		if c := &p.classes[i]; c.has(s) {
			z := p.home[s]
			c.gaps[z] = max(c.gaps[z], p.leeway(s))
		}
	}
}

// narrow finds how much room someone in a zone has at most.
func (p *Planner) narrow(c *class, z int32) {
	c.gaps[z] = 0
	for _, s := range c.pools[z] {
		c.gaps[z] = max(c.gaps[z], p.leeway(s))
	}
}

// promising tells whether someone may have room for so many of a unit's
// endpoints.
func (p *Planner) promising(u *unit, endpoints int32) bool {
	c, cost := p.classOf(u), int64(endpoints)*p.kinds[u.kind].rate
	for z, gap := range c.gaps {
		if gap >= cost && len(c.pools[z]) > 0 {
			return true
		}
	}
	return false
}
