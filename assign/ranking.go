package assign

import (
	"math"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/rendezvous"
)

// ranking is how the units of a leaf rank the zones where they can find a live
// checker. It is kept with the leaf as long as the fleet stays the same.
type ranking struct {
	class   ClassID
	hash    uint64 // the leaf's
	version uint32 // the class's, when it was made; 0 if it was not
	zones   []rank // liked best first
}

// mostRanked is of how many zones each leaf has a ranking of its own.
const mostRanked = 16

// rank is a zone in that order.
type rank struct {
	zone   int32
	tier   int32 // how good it is for the next seat of the unit at hand
	weight uint64
	draw   uint64   // divided by weight: the smallest is liked best
	top    int32    // the best with room when last looked for by a unit of this leaf and size; none if not looked for
	seen   uint32   // arrivals in the zone's pool when leaders were found; 0 if they were not
	lead   [4]int32 // those that rank highest, with room or without
}

func (r *rank) before(o *rank) bool {
	if a, b := r.draw*o.weight, o.draw*r.weight; a != b {
		return a < b
	}
	return r.draw < o.draw
}

// draw is how much a unit likes a zone.
func (p *Planner) draw(u *unit, c *class, z int32) rank {
	return rank{zone: z, weight: uint64(c.mass[z]), draw: rendezvous.Exponential(rendezvous.Score(u.hash, p.zones.Hash(z))), top: none}
}

// rank gives the zones where a unit can find a live checker, in its order.
func (p *Planner) rank(u *unit) []rank {
	id := p.kinds[u.kind].class
	r, c := u.ranking, &p.classes[id]
	if p.zones.Len() > mostRanked {
		r = &p.common
	}
	switch {
	case r.version != c.version || r.hash != u.hash || r.class != id:
		if r.hash != u.hash || r.class != id {
			r.zones = r.zones[:0]
		}
		p.rerank(r, u, c)
		r.class, r.hash, r.version = id, u.hash, c.version
	case p.current != r:
		for i := range r.zones {
			r.zones[i].top = none
		}
	}
	p.current = r
	return r.zones
}

// rerank makes a ranking. What is known of the zones' leaders is kept.
func (p *Planner) rerank(r *ranking, u *unit, c *class) {
	var room [mostRanked]rank
	known := room[:0]
	if len(r.zones) <= mostRanked {
		known = append(known, r.zones...)
	}
	r.zones = r.zones[:0]
	for z := range c.pools {
		if len(c.pools[z]) == 0 {
			continue
		}
		n := p.draw(u, c, int32(z))
		for i := range known {
			if known[i].zone == n.zone {
				n.seen, n.lead = known[i].seen, known[i].lead
			}
		}
		at := len(r.zones)
		r.zones = append(r.zones, n)
		for ; at > 0 && p.likes(&n, &r.zones[at-1]); at-- {
			r.zones[at] = r.zones[at-1]
		}
		r.zones[at] = n
	}
}

// likes breaks ties by what does not depend on how zones are numbered.
func (p *Planner) likes(a, b *rank) bool {
	return a.before(b) || !b.before(a) && p.zones.Hash(a.zone) < p.zones.Hash(b.zone)
}

// best is the one in a zone that ranks highest among those with room.
func (p *Planner) best(u *unit, c *class, r *rank, q quota.Level) int32 {
	if p.cost(u) > c.gaps[r.zone] {
		return none
	}
	if r.seen != c.arrivals[r.zone] {
		p.leaders(u, c, r)
	}
	for _, s := range r.lead {
		if s != none && p.home[s] == r.zone && p.live[s] && p.roomy(u, s, q) && !u.has(s) && c.has(s) {
			return s
		}
	}
	s := p.bestOfAll(u, c, r.zone, q)
	if s == none && p.ceilings > 0 {
		p.narrow(c, r.zone)
	}
	return s
}

// leaders finds those of a zone that rank highest.
func (p *Planner) leaders(u *unit, c *class, r *rank) {
	r.seen, r.lead = c.arrivals[r.zone], [4]int32{none, none, none, none}
	const last = len(r.lead) - 1
	if c.odd[r.zone] > 0 {
		for _, s := range c.pools[r.zone] {
			n := last
			if r.lead[n] != none && !p.outranks(u, s, r.lead[n]) {
				continue
			}
			for ; n > 0 && (r.lead[n-1] == none || p.outranks(u, s, r.lead[n-1])); n-- {
				r.lead[n] = r.lead[n-1]
			}
			r.lead[n] = s
		}
		return
	}
	pool := c.pools[r.zone]
	var scores [len(r.lead)]uint64
	bar := uint64(0) // that about twice as many as are wanted are above
	if wanted := 2 * len(scores); len(pool) > wanted {
		bar -= math.MaxUint64 / uint64(len(pool)) * uint64(wanted)
	}
	left, least := rendezvous.Left(u.hash), bar
	for i, right := range c.rights[r.zone] {
		score := rendezvous.Join(left, right)
		if score <= least {
			continue
		}
		n := last
		for ; n > 0 && score > scores[n-1]; n-- {
			scores[n], r.lead[n] = scores[n-1], r.lead[n-1]
		}
		scores[n], r.lead[n] = score, pool[i]
		least = max(scores[last], bar)
	}
}

// bestOfAll is best if those that rank highest have no room.
func (p *Planner) bestOfAll(u *unit, c *class, z int32, q quota.Level) int32 {
	if c.odd[z] > 0 {
		return p.bestWeighted(u, c, z, q)
	}
	left := rendezvous.Left(u.hash)
	slot, top := int32(none), uint64(0)
	for i, right := range c.rights[z] {
		if score := rendezvous.Join(left, right); score >= top {
			if s := c.pools[z][i]; p.roomy(u, s, q) && !u.has(s) {
				slot, top = s, score
			}
		}
	}
	return slot
}

// bestWeighted is that where not all checkers weigh the same.
func (p *Planner) bestWeighted(u *unit, c *class, z int32, q quota.Level) int32 {
	slot := int32(none)
	for _, s := range c.pools[z] {
		if (slot == none || p.outranks(u, s, slot)) && p.roomy(u, s, q) && !u.has(s) {
			slot = s
		}
	}
	return slot
}

// score is how high a checker ranks for a unit among others of its weight.
func (p *Planner) score(u *unit, s int32) uint64 { return rendezvous.Score(u.hash, p.hash[s]) }

// outranks tells whether a unit ranks one checker above another: by weighted
// rendezvous hashing.
func (p *Planner) outranks(u *unit, a, b int32) bool { return p.compare(u, a, b) > 0 }

func (p *Planner) compare(u *unit, a, b int32) int {
	return rendezvous.Compare(p.score(u, a), p.score(u, b), p.can[a].Weight, p.can[b].Weight)
}
