package assign

import "hdsd/assign/internal/quota"

// endow gives a checker its capacity.
func (p *Planner) endow(s int32, to quota.Capacity) {
	if p.can[s].Ceiling != quota.Unlimited {
		p.ceilings--
	}
	if to.Ceiling != quota.Unlimited {
		p.ceilings++
	}
	p.can[s] = to
}

// cost is what all of a unit's endpoints cost each of its checkers, in checks
// in 1,000 seconds.
func (p *Planner) cost(u *unit) int64 { return int64(u.size()) * p.kinds[u.kind].rate }

// fits tells whether a checker has room for a cost below its ceiling.
func (p *Planner) fits(s int32, cost int64) bool {
	return p.can[s].Ceiling == quota.Unlimited || cost == 0 || p.rate[s]+cost <= p.can[s].Ceiling
}

// over tells whether a checker does more than its ceiling allows.
func (p *Planner) over(s int32) bool { return p.rate[s] > p.can[s].Ceiling }

// leeway is the room that a checker has below its ceiling.
func (p *Planner) leeway(s int32) int64 {
	if p.can[s].Ceiling == quota.Unlimited {
		return quota.Unlimited
	}
	return p.can[s].Ceiling - p.rate[s]
}

// book puts endpoints of a kind on a checker's books, or takes them off.
func (p *Planner) book(s int32, endpoints int32, k int32) {
	p.load[s] += endpoints
	if rate := p.kinds[k].rate; rate != 0 {
		p.rate[s] += int64(endpoints) * rate
		if endpoints < 0 && p.can[s].Ceiling != quota.Unlimited {
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
