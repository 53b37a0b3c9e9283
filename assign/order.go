package assign

import (
	"cmp"
	"math/bits"
	"slices"

	"hdsd/assign/internal/trie"
)

// turn is a unit's position in the order of filling.
type turn struct {
	class int32 // rank of its class, scarcest first
	size  int32 // size class, largest first
	hash  uint64
	unit  int32
	home  bool // may get a seat in its own zone before all other seats are filled
}

// sizes is the number of size classes.
const sizes = 32

// queue orders units for filling: scarcest class first, and within a class the
// largest first.
type queue struct {
	fleet   *fleet
	classes *classes
	forest  *forest
	seats   *seats
}

// order returns the units' turns in order.
func (q *queue) order(units []int32) []turn {
	place := q.classes.byScarcity()
	list := make([]turn, len(units))
	for n, i := range units {
		u := q.seats.unit(i)
		size := sizes - 1 - int32(bits.Len(uint(len(u.members))))
		list[n] = turn{place[u.kind.id], size, u.hash, i, q.home(u)}
	}
	digits := len(place) * sizes
	if len(list) < 256 || len(list) < digits {
		slices.SortFunc(list, q.compare)
		return list
	}
	sorted := make([]turn, len(list))
	starts := trie.Scatter(list, sorted, make([]int32, digits+1), func(t *turn) uint64 { return uint64(t.class*sizes + t.size) })
	for d := range digits {
		q.sort(sorted[starts[d]:starts[d+1]], list[starts[d]:starts[d+1]])
	}
	return sorted
}

// sort sorts turns of one class and size; space has room for as many.
func (q *queue) sort(list, space []turn) {
	digits := bits.Len(uint(len(list))) - 2
	if digits < 4 {
		slices.SortFunc(list, q.compare)
		return
	}
	starts := trie.Scatter(list, space, make([]int32, 1<<digits+1), func(t *turn) uint64 { return t.hash >> (64 - digits) })
	copy(list, space)
	for d := range 1 << digits {
		slices.SortFunc(list[starts[d]:starts[d+1]], q.compare)
	}
}

func (q *queue) compare(a, b turn) int {
	switch {
	case a.class != b.class:
		return int(a.class - b.class)
	case a.size != b.size:
		return int(a.size - b.size)
	case a.hash != b.hash:
		return cmp.Compare(a.hash, b.hash)
	}
	return q.forest.inOrder(a.unit, b.unit)
}

// home reports whether a unit may get a seat in its own zone before all other seats
// are filled.
func (q *queue) home(u *unit) bool {
	if u.zone == none || !u.short() || len(u.substitutes) > 0 {
		return false
	}
	if !u.kind.plain() {
		return true
	}
	isHome := func(s int32) bool { return q.fleet.zone(s) == u.zone }
	return len(u.kind.class.pools[u.zone]) > 0 && !slices.ContainsFunc(u.seats, isHome)
}
