package assign

import "hdsd/assign/internal/quota"

func (p *Planner) classOf(u *unit) *class { return &p.classes[p.kinds[u.kind].class] }

// tally counts a unit's seats by zone and region, those of live checkers only
// or all. It is told whether a seat is in a zone that is not known yet.
func (p *Planner) tally(u *unit, liveOnly bool) (unknown bool) {
	clear(p.used)
	clear(p.usedRegions)
	for _, s := range u.seats {
		if liveOnly && !p.live[s] {
			continue
		}
		p.discount(s, -1)
		unknown = unknown || p.home[s] == none
	}
	if liveOnly {
		for _, s := range u.extra {
			p.discount(s, -1)
		}
	}
	return unknown
}

// graded is the order of zones with their tiers for a unit that is tallied.
func (p *Planner) graded(u *unit) []rank {
	ranking := p.rank(u)
	if p.kinds[u.kind].plain() {
		for i := range ranking {
			z := ranking[i].zone
			switch {
			case p.used[z] > 0:
				ranking[i].tier = 2
			case z == u.zone:
				ranking[i].tier = 0
			default:
				ranking[i].tier = 1
			}
		}
		return ranking
	}
	for i := range ranking {
		ranking[i].tier = int32(p.tier(u, ranking[i].zone))
	}
	return ranking
}

// pick finds the checker that is to have a unit's next seat, or none: in the
// best tier of zones, below a given one, where there is a checker. It goes by
// what tally counted.
func (p *Planner) pick(u *unit, below int) int32 {
	return p.first(u, p.graded(u), below)
}

// pickSubstitute finds a substitute for a tallied unit, or none. Where there is no
// room in its own zone, others that are unused are as good, or those who stand in
// for many of one zone would be the few that are left there.
func (p *Planner) pickSubstitute(u *unit) int32 {
	ranking := p.graded(u)
	if s := p.pickRoom(u, 0, 0); s != none {
		return s
	}
	for i := range ranking {
		ranking[i].tier = max(ranking[i].tier, 1)
	}
	return p.first(u, ranking, never)
}

// first goes through the tiers of a ranking, best first.
func (p *Planner) first(u *unit, ranking []rank, below int) int32 {
	at := below
	for i := range ranking {
		at = min(at, int(ranking[i].tier))
	}
	for at < below {
		if s := p.pickFrom(u, at); s != none {
			return s
		}
		next := below
		for i := range ranking {
			if t := int(ranking[i].tier); t > at {
				next = min(next, t)
			}
		}
		at = next
	}
	return none
}

// pickFrom takes the best of the first zone of a tier where someone has room,
// else the least loaded of all in these zones.
func (p *Planner) pickFrom(u *unit, tier int) int32 {
	if s := p.pickRoom(u, tier, tier); s != none {
		return s
	}
	c, cost := p.classOf(u), p.cost(u)
	best, limit := int32(none), int64(0)
	for i := range p.current.zones {
		r := &p.current.zones[i]
		if int(r.tier) != tier || cost > c.gaps[r.zone] {
			continue
		}
		for _, s := range c.pools[r.zone] {
			if u.has(s) || !p.fits(s, cost) {
				continue
			}
			there := int64(max(p.quotas.Of(quota.Limit, s), 1))
			if best != none {
				mine, its := int64(p.load[s])*limit, int64(p.load[best])*there
				if mine > its || mine == its && p.score(u, s) < p.score(u, best) {
					continue
				}
			}
			best, limit = s, there
		}
	}
	return best
}

// pickRoom looks for someone with room only, in the zones of some tiers.
func (p *Planner) pickRoom(u *unit, from, to int) int32 {
	c := p.classOf(u)
	for i := range p.current.zones {
		r := &p.current.zones[i]
		if int(r.tier) < from || int(r.tier) > to {
			continue
		}
		if r.top != none && p.roomy(u, r.top, quota.Limit) && !u.has(r.top) {
			return r.top
		}
		if s := p.best(u, c, r, quota.Limit); s != none {
			r.top = s
			return s
		}
	}
	return none
}

// roomy tells whether a checker has room for a unit below a quota and its
// ceiling.
func (p *Planner) roomy(u *unit, s int32, q quota.Level) bool {
	return p.load[s]+u.size() <= p.quotas.Of(q, s) && p.fits(s, p.cost(u))
}
