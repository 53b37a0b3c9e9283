package assign

import (
	"slices"

	"hdsd/assign/internal/trie"
	"hdsd/assign/internal/zone"
	"hdsd/health"
)

// none is no slot, no zone, no unit.
const none = zone.None

// leaf is the endpoints of one kind whose hashes begin alike.
type leaf struct {
	trie.Node
	hash    uint64 // ranks zones and checkers
	first   int32  // of its units, one for each zone; the others follow by unit.next
	ranking *ranking
}

// unit is the endpoints of a leaf that have the same own zone, and who checks
// them. Units of one leaf rank zones and checkers alike, so that the checkers of a
// cluster are few.
type unit struct {
	trie.Node       // its leaf's, as hash and ranking are
	kind      *kind // nil where the number is free
	hash      uint64
	ranking   *ranking
	zone      int32               // none where they have none
	next      int32               // in the leaf, by hash of zone; none after the last
	members   []health.EndpointID // by key
	sum       uint64              // of its endpoints' hashes, for the digest

	seats       []int32 // slots, sorted; only type seats changes them
	substitutes []int32 // the same

	touched uint32 // the step in which its seats changed
	before  span   // seats and substitutes before that
	visited uint32 // the step in which it was last listed to be looked at
	wanted  bool   // listed as one that could use a checker that comes
	born    bool   // all its endpoints are new in this step
	mixed   bool   // some of them are told of one by one in this step
}

// all lists seats and substitutes, sorted.
func (u *unit) all() []int32 {
	both := append(append(make([]int32, 0, len(u.seats)+len(u.substitutes)), u.seats...), u.substitutes...)
	if len(u.substitutes) > 0 {
		slices.Sort(both)
	}
	return both
}

// current is all, in a list that changes with the unit.
func (u *unit) current() []int32 {
	if len(u.substitutes) == 0 {
		return u.seats
	}
	return u.all()
}

// has tells whether a checker has a seat or is a substitute.
func (u *unit) has(s int32) bool {
	return slices.Contains(u.seats, s) || slices.Contains(u.substitutes, s)
}

func (u *unit) seated(s int32) bool      { return slices.Contains(u.seats, s) }
func (u *unit) substituted(s int32) bool { return slices.Contains(u.substitutes, s) }

// size is how many endpoints there are.
func (u *unit) size() int32 { return int32(len(u.members)) }

// cost is what all of them cost each checker, in checks in 1,000 seconds.
func (u *unit) cost() int64 { return int64(len(u.members)) * u.kind.rate }

// short tells whether there are fewer seats than wanted.
func (u *unit) short() bool { return len(u.seats) < u.kind.wants() }

// fewest is how many live checkers the unit must have, whoever is lost.
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
	if at := slices.Index(list, s); at >= 0 {
		return slices.Delete(list, at, at+1)
	}
	return list
}
