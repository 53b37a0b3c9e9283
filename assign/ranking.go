package assign

import (
	"math"
	"slices"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/rendezvous"
	"hdsd/assign/internal/zone"
)

// ranking is the order in which the units of a leaf prefer zones that have a live
// checker. The leaf keeps it while the fleet stays the same.
type ranking struct {
	class   *class
	hash    uint64 // hash of the leaf
	version uint32 // version of the class when the ranking was made; 0 if it was not
	zones   []rank // best first
}

// rank is one zone of a ranking.
type rank struct {
	zone   int32
	tier   int32 // how good it is for the next seat of the current unit
	weight uint64
	draw   uint64   // divided by the zone's weight: the smallest ranks first
	top    int32    // the best checker with room that the latest unit of this leaf and size found; none if not searched
	seen   uint32   // arrivals in the zone's pool when lead was computed; 0 if it was not
	lead   [4]int32 // the checkers that rank highest, with room or without
}

func (r *rank) before(o *rank) bool {
	if a, b := r.draw*o.weight, o.draw*r.weight; a != b {
		return a < b
	}
	return r.draw < o.draw
}

// mostRanked is the largest number of zones with which each leaf keeps its own
// ranking. With more, all leaves share one, which is made again for each leaf.
const mostRanked = 16

// rankings ranks zones and checkers for units, by weighted rendezvous hashing.
type rankings struct {
	table *zone.Table
	fleet *fleet
	room  *room

	current *ranking // ranking of the current unit
	common  ranking  // ranking of the current leaf, if there are many zones
}

// forget drops the current ranking, and so the best checkers that were found.
func (rs *rankings) forget() { rs.current = nil }

// zones returns the ranked zones in which a unit can find a live checker.
func (rs *rankings) zones(u *unit) []rank {
	r, c := u.ranking, u.kind.class
	if rs.table.Len() > mostRanked {
		r = &rs.common
	}
	switch {
	case r.version != c.version || r.hash != u.hash || r.class != c:
		if r.hash != u.hash || r.class != c {
			r.zones = r.zones[:0]
		}
		rs.remake(r, u)
		r.class, r.hash, r.version = c, u.hash, c.version
	case rs.current != r:
		for i := range r.zones {
			r.zones[i].top = none
		}
	}
	rs.current = r
	return r.zones
}

// ofZone returns the rank of a zone with a live checker for a unit.
func (rs *rankings) ofZone(u *unit, z int32) *rank {
	zones := rs.zones(u)
	return &zones[slices.IndexFunc(zones, func(r rank) bool { return r.zone == z })]
}

// remake makes a ranking, and keeps the leaders of its zones.
func (rs *rankings) remake(r *ranking, u *unit) {
	var space [mostRanked]rank
	known := space[:0]
	if len(r.zones) <= mostRanked {
		known = append(known, r.zones...)
	}
	r.zones = r.zones[:0]
	for z, pool := range u.kind.class.pools {
		if len(pool) == 0 {
			continue
		}
		n := rs.draw(u, int32(z))
		for i := range known {
			if known[i].zone == n.zone {
				n.seen, n.lead = known[i].seen, known[i].lead
			}
		}
		index := len(r.zones)
		r.zones = append(r.zones, n)
		for ; index > 0 && rs.prefers(&n, &r.zones[index-1]); index-- {
			r.zones[index] = r.zones[index-1]
		}
		r.zones[index] = n
	}
}

// draw returns a zone's rank for a unit, by weighted rendezvous hashing.
func (rs *rankings) draw(u *unit, z int32) rank {
	score := rendezvous.Score(u.hash, rs.table.Hash(z))
	return rank{zone: z, weight: uint64(u.kind.class.mass[z]), draw: rendezvous.Exponential(score), top: none}
}

// prefers reports whether zone a ranks before zone b. Ties do not depend on how zones
// are numbered.
func (rs *rankings) prefers(a, b *rank) bool {
	return a.before(b) || !b.before(a) && rs.table.Hash(a.zone) < rs.table.Hash(b.zone)
}

// best returns the checker of a zone that ranks highest among those with room.
func (rs *rankings) best(u *unit, r *rank, q quota.Level) int32 {
	c := u.kind.class
	if !c.mayFitIn(r.zone, u.cost()) {
		return none
	}
	if r.seen != c.arrivals[r.zone] {
		rs.findLeaders(u, r)
	}
	for _, s := range r.lead {
		if s != none && rs.fleet.zone(s) == r.zone && rs.fleet.present(s) && rs.room.takes(s, u, q) && !u.has(s) && c.has(s) {
			return s
		}
	}
	s := rs.bestOfAll(u, r.zone, q)
	if s == none && rs.room.hasCeilings() {
		c.narrow(r.zone, rs.room)
	}
	return s
}

// findLeaders finds the checkers of a zone that rank highest.
func (rs *rankings) findLeaders(u *unit, r *rank) {
	c := u.kind.class
	r.seen, r.lead = c.arrivals[r.zone], [4]int32{none, none, none, none}
	const last = len(r.lead) - 1
	if c.odd[r.zone] > 0 {
		for _, s := range c.pools[r.zone] {
			n := last
			if r.lead[n] != none && !rs.outranks(u, s, r.lead[n]) {
				continue
			}
			for ; n > 0 && (r.lead[n-1] == none || rs.outranks(u, s, r.lead[n-1])); n-- {
				r.lead[n] = r.lead[n-1]
			}
			r.lead[n] = s
		}
		return
	}
	pool := c.pools[r.zone]
	var scores [len(r.lead)]uint64
	bar := uint64(0) // about twice as many checkers as needed score above it
	if wanted := 2 * len(scores); len(pool) > wanted {
		bar -= math.MaxUint64 / uint64(len(pool)) * uint64(wanted)
	}
	left, minimum := rendezvous.Left(u.hash), bar
	for i, right := range c.rights[r.zone] {
		score := rendezvous.Join(left, right)
		if score <= minimum {
			continue
		}
		n := last
		for ; n > 0 && score > scores[n-1]; n-- {
			scores[n], r.lead[n] = scores[n-1], r.lead[n-1]
		}
		scores[n], r.lead[n] = score, pool[i]
		minimum = max(scores[last], bar)
	}
}

// bestOfAll is best over the whole zone, for when none of its leaders has room.
func (rs *rankings) bestOfAll(u *unit, z int32, q quota.Level) int32 {
	c := u.kind.class
	slot, top := int32(none), uint64(0)
	if c.odd[z] > 0 {
		for _, s := range c.pools[z] {
			if (slot == none || rs.outranks(u, s, slot)) && rs.room.takes(s, u, q) && !u.has(s) {
				slot = s
			}
		}
		return slot
	}
	left := rendezvous.Left(u.hash)
	for i, right := range c.rights[z] {
		if score := rendezvous.Join(left, right); score >= top {
			if s := c.pools[z][i]; rs.room.takes(s, u, q) && !u.has(s) {
				slot, top = s, score
			}
		}
	}
	return slot
}

// score returns a checker's score for a unit, among checkers of equal weight.
func (rs *rankings) score(u *unit, s int32) uint64 {
	return rendezvous.Score(u.hash, rs.fleet.hash(s))
}

// compare compares two checkers by how high a unit ranks them.
func (rs *rankings) compare(u *unit, a, b int32) int {
	return rendezvous.Compare(rs.score(u, a), rs.score(u, b), rs.fleet.weight(a), rs.fleet.weight(b))
}

// outranks reports whether checker a ranks above checker b for a unit.
func (rs *rankings) outranks(u *unit, a, b int32) bool { return rs.compare(u, a, b) > 0 }
