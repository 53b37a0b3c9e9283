package assign

import "hdsd/assign/internal/quota"

// picker finds a checker for a unit's next seat. It takes the best tier of zones,
// then the zone that ranks first, then the checker with room that ranks highest.
type picker struct {
	fleet    *fleet
	room     *room
	tally    *tally
	rankings *rankings
}

// graded returns the ranked zones of a counted unit, with their tiers.
func (p *picker) graded(u *unit) []rank {
	zones := p.rankings.zones(u)
	p.tally.grade(u, zones)
	return zones
}

// pick finds the checker for the next seat of a counted unit. It considers only tiers
// better than below, and returns none if there is no checker.
func (p *picker) pick(u *unit, below int) int32 { return p.first(u, p.graded(u), below) }

// pickSubstitute finds a substitute for a unit whose live checkers are counted, or
// none. If its own zone has no room, all other unused zones are equally good.
// Otherwise the few checkers left in a zone would substitute for many.
func (p *picker) pickSubstitute(u *unit) int32 {
	zones := p.graded(u)
	if s := p.withRoom(u, zones, 0, 0); s != none {
		return s
	}
	for i := range zones {
		zones[i].tier = max(zones[i].tier, 1)
	}
	return p.first(u, zones, never)
}

// pickHome finds a substitute in the own zone of a counted unit, or none.
func (p *picker) pickHome(u *unit) int32 { return p.first(u, p.home(u), 1) }

// pickHomeRoom finds a checker with room in the own zone of a counted unit, or none.
func (p *picker) pickHomeRoom(u *unit) int32 { return p.withRoom(u, p.home(u), 0, 0) }

// home returns the ranked zones of a unit, all but its own in the worst tier.
func (p *picker) home(u *unit) []rank {
	zones := p.graded(u)
	for i := range zones {
		if zones[i].tier = never; zones[i].zone == u.zone {
			zones[i].tier = 0
		}
	}
	return zones
}

// pickRoom finds a checker with room in a tier no worse than the given one, or none.
func (p *picker) pickRoom(u *unit, tier int) int32 { return p.withRoom(u, p.graded(u), 0, tier) }

// first searches the tiers of zones, best first.
func (p *picker) first(u *unit, zones []rank, below int) int32 {
	tier := below
	for i := range zones {
		tier = min(tier, int(zones[i].tier))
	}
	for tier < below {
		if s := p.inTier(u, zones, tier); s != none {
			return s
		}
		higher := below
		for i := range zones {
			if t := int(zones[i].tier); t > tier {
				higher = min(higher, t)
			}
		}
		tier = higher
	}
	return none
}

// inTier returns the best checker of the tier's first zone where one has room. If
// none has room, it returns the least loaded checker of the tier.
func (p *picker) inTier(u *unit, zones []rank, tier int) int32 {
	if s := p.withRoom(u, zones, tier, tier); s != none {
		return s
	}
	c, cost := u.kind.class, u.cost()
	best, bestLimit := int32(none), int64(0)
	for i := range zones {
		r := &zones[i]
		if int(r.tier) != tier || !c.mayFitIn(r.zone, cost) {
			continue
		}
		for _, s := range c.pools[r.zone] {
			if u.has(s) || !p.room.fits(s, cost) {
				continue
			}
			limit := int64(max(p.room.quota(quota.Limit, s), 1))
			if best != none {
				mine, theirs := int64(p.room.load(s))*bestLimit, int64(p.room.load(best))*limit
				if mine > theirs || mine == theirs && p.rankings.score(u, s) < p.rankings.score(u, best) {
					continue
				}
			}
			best, bestLimit = s, limit
		}
	}
	return best
}

// withRoom searches the zones of some tiers for a checker with room.
func (p *picker) withRoom(u *unit, zones []rank, from, to int) int32 {
	for i := range zones {
		r := &zones[i]
		if int(r.tier) < from || int(r.tier) > to {
			continue
		}
		if r.top != none && p.room.takes(r.top, u, quota.Limit) && !u.has(r.top) {
			return r.top
		}
		if s := p.rankings.best(u, r, quota.Limit); s != none {
			r.top = s
			return s
		}
	}
	return none
}
