package assign

// rank is a zone in the order in which a unit likes them.
type rank struct {
	zone   int32
	weight uint64
	draw   uint64 // divided by weight: the smallest is liked best
}

func (r rank) before(o rank) bool {
	if a, b := r.draw*o.weight, o.draw*r.weight; a != b {
		return a < b
	}
	return r.draw < o.draw
}

// draw is how much a unit likes a zone.
func (p *Planner) draw(u *unit, c *class, z int32) rank {
	return rank{z, uint64(c.seats[z]), exponential(mix(u.hash, p.zoneHash[z]))}
}

// rank orders the zones where a unit can find a live checker.
func (p *Planner) rank(i int32) []rank {
	if p.raced == i {
		return p.ranking
	}
	u := &p.units[i]
	c := p.classOf(u)
	p.ranking = p.ranking[:0]
	for z := range c.pools {
		if len(c.pools[z]) == 0 {
			continue
		}
		r := p.draw(u, c, int32(z))
		at := len(p.ranking)
		p.ranking = append(p.ranking, r)
		for ; at > 0 && p.likes(r, p.ranking[at-1]); at-- {
			p.ranking[at] = p.ranking[at-1]
		}
		p.ranking[at] = r
	}
	p.raced = i
	return p.ranking
}

// likes breaks ties by what does not depend on how zones are numbered.
func (p *Planner) likes(a, b rank) bool {
	return a.before(b) || !b.before(a) && p.zoneHash[a.zone] < p.zoneHash[b.zone]
}

func (p *Planner) classOf(u *unit) *class { return &p.classes[p.kinds[u.kind].class] }

// tally counts a unit's seats by zone in p.used, those of live checkers only
// or all. It is told whether a seat is in a zone that is not known yet.
func (p *Planner) tally(u *unit, liveOnly bool) (unknown bool) {
	clear(p.used)
	for _, s := range u.seats {
		switch z := p.home[s]; {
		case liveOnly && !p.live[s]:
		case z == none:
			unknown = true
		default:
			p.used[z]++
		}
	}
	for _, s := range u.extra {
		if liveOnly {
			p.used[p.home[s]]++
		}
	}
	return unknown
}

// pick finds the checker that is to have a unit's next seat, or none. It goes
// by the zones that tally counted: first the unit's own, then others that it
// does not have, then any.
func (p *Planner) pick(i int32) int32 {
	if s := p.pickOwn(i); s != none {
		return s
	}
	if s := p.pickNew(i); s != none {
		return s
	}
	return p.pickFrom(i, func(int32) bool { return true })
}

// pickOwn looks in the unit's own zone, if that is not used yet.
func (p *Planner) pickOwn(i int32) int32 {
	own := p.kinds[p.units[i].kind].zone
	if own == none || p.used[own] > 0 {
		return none
	}
	return p.pickFrom(i, func(z int32) bool { return z == own })
}

// pickNew looks in all zones that are not used yet.
func (p *Planner) pickNew(i int32) int32 {
	return p.pickFrom(i, func(z int32) bool { return p.used[z] == 0 })
}

// pickFrom takes the best of the first zone where someone has room, else the
// least loaded of all.
func (p *Planner) pickFrom(i int32, eligible func(z int32) bool) int32 {
	if s := p.pickRoom(i, eligible); s != none {
		return s
	}
	u := &p.units[i]
	c := p.classOf(u)
	best, limit := int32(none), int64(0)
	for _, r := range p.rank(i) {
		if !eligible(r.zone) {
			continue
		}
		there := int64(max(c.limit[r.zone], 1))
		for _, e := range c.pools[r.zone] {
			if u.has(e.slot) {
				continue
			}
			if best != none {
				mine, its := int64(p.load[e.slot])*limit, int64(p.load[best])*there
				if mine > its || mine == its && mix(u.hash, e.hash) < mix(u.hash, p.hash[best]) {
					continue
				}
			}
			best, limit = e.slot, there
		}
	}
	return best
}

// pickRoom looks for someone with room only.
func (p *Planner) pickRoom(i int32, eligible func(z int32) bool) int32 {
	u := &p.units[i]
	c := p.classOf(u)
	for _, r := range p.rank(i) {
		if eligible(r.zone) {
			if s := p.best(u, c.pools[r.zone], c.limit[r.zone]); s != none {
				return s
			}
		}
	}
	return none
}

// best is the one that ranks highest among those with room below a limit.
func (p *Planner) best(u *unit, pool []entry, limit int32) int32 {
	room, hash := limit-u.size(), u.hash
	slot, top := int32(none), uint64(0)
	for _, e := range pool {
		if p.load[e.slot] > room {
			continue
		}
		if score := mix(hash, e.hash); (score > top || slot == none) && !u.has(e.slot) {
			slot, top = e.slot, score
		}
	}
	return slot
}

// score is how high a checker ranks for a unit.
func (p *Planner) score(u *unit, s int32) uint64 { return mix(u.hash, p.hash[s]) }
