package assign

// rank is a zone in the order in which a unit likes them.
type rank struct {
	zone   int32
	weight uint64
	draw   uint64 // divided by weight: the smallest is liked best
	tier   int    // how good it is for the next seat
	top    int32  // the checker in it that was the best with room when last looked for; none if not looked for
}

func (r rank) before(o rank) bool {
	if a, b := r.draw*o.weight, o.draw*r.weight; a != b {
		return a < b
	}
	return r.draw < o.draw
}

// draw is how much a unit likes a zone.
func (p *Planner) draw(u *unit, c *class, z int32) rank {
	return rank{zone: z, weight: uint64(c.mass[z]), draw: exponential(mix(u.hash, p.zoneHash[z])), top: none}
}

// rank orders the zones where a unit can find a live checker. All units of a
// leaf have the same order.
func (p *Planner) rank(u *unit) []rank {
	id := p.kinds[u.kind].class
	if p.current == int32(id) && p.currentHash == u.hash {
		return p.ranking
	}
	c := &p.classes[id]
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
	p.current, p.currentHash = int32(id), u.hash
	return p.ranking
}

// likes breaks ties by what does not depend on how zones are numbered.
func (p *Planner) likes(a, b rank) bool {
	return a.before(b) || !b.before(a) && p.zoneHash[a.zone] < p.zoneHash[b.zone]
}

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
	for i := range ranking {
		ranking[i].tier = p.tier(u, ranking[i].zone)
	}
	return ranking
}

// pick finds the checker that is to have a unit's next seat, or none: in the
// best tier of zones, below a given one, where there is a checker. It goes by
// what tally counted.
func (p *Planner) pick(u *unit, below int) int32 {
	ranking := p.graded(u)
	at := below
	for i := range ranking {
		at = min(at, ranking[i].tier)
	}
	for at < below {
		if s := p.pickFrom(u, at); s != none {
			return s
		}
		next := below
		for i := range ranking {
			if t := ranking[i].tier; t > at {
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
	for _, r := range p.ranking {
		if r.tier != tier {
			continue
		}
		for _, e := range c.pools[r.zone] {
			if u.has(e.slot) || !p.fits(e.slot, cost) {
				continue
			}
			there := int64(max(p.of(c.limit[r.zone], e.slot), 1))
			if best != none {
				mine, its := int64(p.load[e.slot])*limit, int64(p.load[best])*there
				if mine > its || mine == its && p.score(u, e.slot) < p.score(u, best) {
					continue
				}
			}
			best, limit = e.slot, there
		}
	}
	return best
}

// pickRoom looks for someone with room only, in the zones of some tiers.
func (p *Planner) pickRoom(u *unit, from, to int) int32 {
	c := p.classOf(u)
	for i := range p.ranking {
		r := &p.ranking[i]
		if r.tier < from || r.tier > to {
			continue
		}
		if r.top != none && p.roomy(u, r.top, c.limit[r.zone]) && !u.has(r.top) {
			return r.top
		}
		if s := p.best(u, c, r.zone, c.limit[r.zone]); s != none {
			r.top = s
			return s
		}
	}
	return none
}

// roomy tells whether a checker has room for a unit below a quota and its
// ceiling.
func (p *Planner) roomy(u *unit, s int32, q quota) bool {
	return p.load[s]+u.size() <= p.of(q, s) && p.fits(s, p.cost(u))
}

// best is the one in a zone that ranks highest among those with room.
func (p *Planner) best(u *unit, c *class, z int32, q quota) int32 {
	if c.odd[z] > 0 {
		return p.bestWeighted(u, c, z, q)
	}
	room, left := p.full(q)-u.size(), u.hash^mixLeft
	slot, top := int32(none), uint64(0)
	for _, e := range c.pools[z] {
		if score := mixed(left, e.right); score >= top && p.load[e.slot] <= room && !u.has(e.slot) && p.fits(e.slot, p.cost(u)) {
			slot, top = e.slot, score
		}
	}
	return slot
}

// bestWeighted is best where not all checkers weigh the same.
func (p *Planner) bestWeighted(u *unit, c *class, z int32, q quota) int32 {
	slot := int32(none)
	for _, e := range c.pools[z] {
		if (slot == none || p.outranks(u, e.slot, slot)) && p.roomy(u, e.slot, q) && !u.has(e.slot) {
			slot = e.slot
		}
	}
	return slot
}

// score is how high a checker ranks for a unit among others of its weight.
func (p *Planner) score(u *unit, s int32) uint64 { return mix(u.hash, p.hash[s]) }

// outranks tells whether a unit ranks one checker above another: by weighted
// rendezvous hashing.
func (p *Planner) outranks(u *unit, a, b int32) bool { return p.compare(u, a, b) > 0 }

func (p *Planner) compare(u *unit, a, b int32) int {
	x, y := p.score(u, a), p.score(u, b)
	if v, w := p.can[a].weight, p.can[b].weight; v != w {
		const precise = 1 << 24
		if s, t := exponential(x)*precise/uint64(v), exponential(y)*precise/uint64(w); s != t {
			x, y = t, s
		}
	}
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
