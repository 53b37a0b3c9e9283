package assign

import (
	"cmp"
	"math/bits"
	"slices"

	"hdsd/assign/internal/trie"
)

// turn is a unit's place in the order of filling.
type turn struct {
	class int32 // rank of its class
	size  int32 // size class, largest first
	hash  uint64
	unit  int32

	homeward bool // it may get a seat in its own zone
}

// sizes is how many size classes there are.
const sizes = 32

// turns puts units in the order of filling.
func (p *Planner) turns(units []int32) []turn {
	place := p.places()
	order := make([]turn, len(units))
	for n, i := range units {
		u := &p.units[i]
		size := sizes - 1 - int32(bits.Len(uint(len(u.members))))
		order[n] = turn{place[p.kinds[u.kind].class], size, u.hash, i, p.homeward(u)}
	}
	digits := len(place) * sizes
	if len(order) < 256 || len(order) < digits {
		slices.SortFunc(order, p.byTurn)
		return order
	}
	sorted := make([]turn, len(order))
	starts := trie.Scatter(order, sorted, make([]int32, digits+1), func(t *turn) uint64 { return uint64(t.class*sizes + t.size) })
	for d := range digits {
		p.sortTurns(sorted[starts[d]:starts[d+1]], order[starts[d]:starts[d+1]])
	}
	return sorted
}

// sortTurns sorts those of one class and size, with space for as many.
func (p *Planner) sortTurns(order, space []turn) {
	digits := bits.Len(uint(len(order))) - 2
	if digits < 4 {
		slices.SortFunc(order, p.byTurn)
		return
	}
	starts := trie.Scatter(order, space, make([]int32, 1<<digits+1), func(t *turn) uint64 { return t.hash >> (64 - digits) })
	copy(order, space)
	for d := range 1 << digits {
		slices.SortFunc(order[starts[d]:starts[d+1]], p.byTurn)
	}
}

func (p *Planner) byTurn(a, b turn) int {
	switch {
	case a.class != b.class:
		return int(a.class - b.class)
	case a.size != b.size:
		return int(a.size - b.size)
	case a.hash != b.hash:
		return cmp.Compare(a.hash, b.hash)
	}
	return p.inOrder(a.unit, b.unit)
}

// homeward tells whether a unit may get a seat in its own zone before all others
// get theirs.
func (p *Planner) homeward(u *unit) bool {
	k := &p.kinds[u.kind]
	if u.zone == none || len(u.seats) >= int(k.redundancy) || len(u.extra) > 0 {
		return false
	}
	if !k.plain() {
		return true
	}
	isHome := func(s int32) bool { return p.home[s] == u.zone }
	return len(p.classes[k.class].pools[u.zone]) > 0 && !slices.ContainsFunc(u.seats, isHome)
}

// places ranks the classes, scarcest first.
func (p *Planner) places() []int32 {
	classes := make([]int32, len(p.classes))
	for c := range classes {
		classes[c] = int32(c)
	}
	slices.SortFunc(classes, p.scarcer)
	place := make([]int32, len(classes))
	for n, c := range classes {
		place[c] = int32(n)
	}
	return place
}

// scarcer compares classes by how few checkers are able to serve them.
func (p *Planner) scarcer(a, b int32) int {
	return cmp.Or(cmp.Compare(p.classes[a].total, p.classes[b].total), cmp.Compare(p.classes[a].hash, p.classes[b].hash))
}

// arrange sorts the units that were touched by what they are.
func (p *Planner) arrange(touched []int32) []int32 {
	if len(touched) < len(p.units)/16 {
		slices.SortFunc(touched, p.inOrder)
		return touched
	}
	touched = touched[:0]
	for _, k := range p.kindOrder {
		for i := range p.unitsOf(k) {
			if p.units[i].touched == p.step {
				touched = append(touched, i)
			}
		}
	}
	return touched
}

// inOrder compares two units by what they are, not by their numbers.
func (p *Planner) inOrder(a, b int32) int {
	u, v := &p.units[a], &p.units[b]
	if u.kind != v.kind {
		if c := cmp.Compare(p.kinds[u.kind].hash, p.kinds[v.kind].hash); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(u.Prefix.Hi, v.Prefix.Hi), cmp.Compare(u.Prefix.Lo, v.Prefix.Lo),
		cmp.Compare(u.Depth, v.Depth), p.zones.Compare(u.zone, v.zone))
}
