package assign

import "hdsd/assign/internal/quota"

// picker finds a checker for a unit's next seat: in the best tier of zones, there
// in the zone that ranks first, there the one that ranks highest with room.
type picker struct {
	fleet    *fleet
	room     *room
	tally    *tally
	rankings *rankings
}

// graded ranks the zones for a unit that is counted, with their tiers.
func (p *picker) graded(u *unit) []rank {
	zones := p.rankings.of(u)
	p.tally.grade(u, zones)
	return zones
}

// pick finds the checker that is to have the next seat of a unit that is counted,
// in a tier below a given one; none if there is none.
func (p *picker) pick(u *unit, below int) int32 { return p.first(u, p.graded(u), below) }

// pickSubstitute finds a substitute for a unit whose live checkers are counted, or
// none. Where there is no room in its own zone, other unused ones are as good: the
// few that are left in a zone would else stand in for many.
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

// pickRoom finds a checker with room in a tier as good as one, or none.
func (p *picker) pickRoom(u *unit, tier int) int32 { return p.withRoom(u, p.graded(u), 0, tier) }

// first goes through the tiers of zones, best first.
func (p *picker) first(u *unit, zones []rank, below int) int32 {
	at := below
	for i := range zones {
		at = min(at, int(zones[i].tier))
	}
	for at < below {
		if s := p.inTier(u, zones, at); s != none {
			return s
		}
		next := below
		for i := range zones {
			if t := int(zones[i].tier); t > at {
				next = min(next, t)
			}
		}
		at = next
	}
	return none
}

// inTier takes the best of the first zone of a tier where someone has room, else
// the least loaded of all in these zones.
func (p *picker) inTier(u *unit, zones []rank, tier int) int32 {
	if s := p.withRoom(u, zones, tier, tier); s != none {
		return s
	}
	c, cost := u.kind.class, u.cost()
	best, limit := int32(none), int64(0)
	for i := range zones {
		r := &zones[i]
		if int(r.tier) != tier || !c.mayFitIn(r.zone, cost) {
			continue
		}
		for _, s := range c.pools[r.zone] {
			if u.has(s) || !p.room.fits(s, cost) {
				continue
			}
			there := int64(max(p.room.quota(quota.Limit, s), 1))
			if best != none {
				mine, its := int64(p.room.load(s))*limit, int64(p.room.load(best))*there
				if mine > its || mine == its && p.rankings.score(u, s) < p.rankings.score(u, best) {
					continue
				}
			}
			best, limit = s, there
		}
	}
	return best
}

// withRoom looks for someone with room only, in the zones of some tiers.
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
