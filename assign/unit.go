package assign

import (
	"slices"

	"hdsd/assign/internal/trie"
	"hdsd/assign/internal/zone"
	"hdsd/health"
)

// none stands for no slot, no zone and no unit.
const none = zone.None

// leaf groups endpoints of one kind whose keys share a prefix.
type leaf struct {
	trie.Node
	hash    uint64 // ranks zones and checkers
	first   int32  // its first unit; unit.next links the units, one for each zone
	ranking *ranking
}

// unit groups the endpoints of a leaf that have the same own zone, with their
// checkers. Units of one leaf rank zones and checkers alike, so that a cluster has
// few checkers.
type unit struct {
	trie.Node       // copied from its leaf, as hash and ranking are
	kind      *kind // nil if the number is free
	hash      uint64
	ranking   *ranking
	zone      int32               // none if the endpoints have no zone
	next      int32               // the leaf's next unit, by hash of the zone; none after the last
	members   []health.EndpointID // by key
	sum       uint64              // sum of its endpoints' hashes, for the digest

	seats       []int32 // slots, sorted; only type seats changes them
	substitutes []int32 // like seats

	touched uint32 // the step in which its seats last changed
	before  span   // its seats and substitutes before that step
	visited uint32 // the latest step that listed it
	wanted  bool   // listed because it could use a new checker
	born    bool   // all its endpoints are new in this step
	mixed   bool   // some of its endpoints are reported one by one in this step
}

// all returns seats and substitutes, sorted.
func (u *unit) all() []int32 {
	checkers := append(append(make([]int32, 0, len(u.seats)+len(u.substitutes)), u.seats...), u.substitutes...)
	if len(u.substitutes) > 0 {
		slices.Sort(checkers)
	}
	return checkers
}

// current is all, but the list may change with the unit.
func (u *unit) current() []int32 {
	if len(u.substitutes) == 0 {
		return u.seats
	}
	return u.all()
}

// has reports whether a checker has a seat or is a substitute.
func (u *unit) has(s int32) bool {
	return slices.Contains(u.seats, s) || slices.Contains(u.substitutes, s)
}

func (u *unit) seated(s int32) bool      { return slices.Contains(u.seats, s) }
func (u *unit) substituted(s int32) bool { return slices.Contains(u.substitutes, s) }

// size returns the number of endpoints.
func (u *unit) size() int32 { return int32(len(u.members)) }

// cost returns the cost of all its endpoints for each checker: checks in 1,000 seconds.
func (u *unit) cost() int64 { return int64(len(u.members)) * u.kind.rate }

// short reports whether there are fewer seats than wanted.
func (u *unit) short() bool { return len(u.seats) < u.kind.wants() }

// fewest returns the number of live checkers the unit needs even while checkers are lost.
func (u *unit) fewest() int { return min(2, u.kind.wants()) }

// insert adds a slot to a sorted list.
func insert(list []int32, s int32) []int32 {
	list = append(list, s)
	for n := len(list) - 1; n > 0 && list[n-1] > s; n-- {
		list[n], list[n-1] = list[n-1], s
	}
	return list
}

// without removes a slot from a sorted list.
func without(list []int32, s int32) []int32 {
	if index := slices.Index(list, s); index >= 0 {
		return slices.Delete(list, index, index+1)
	}
	return list
}
