package assign

import (
	"cmp"
	"math/bits"
	"slices"
)

// sortItems sorts by key: by the first bits of the cluster's hash, then, since
// a cluster's endpoints all have the same, by those of their own.
func (p *Planner) sortItems(items []item) []item {
	digits := min(bits.Len(uint(len(items)))-3, 16)
	if digits < 8 {
		slices.SortFunc(items, byKey)
		return items
	}
	sorted, starts := scatter(items, make([]item, len(items)), make([]int32, 1<<digits+1), func(i *item) uint64 { return i.hi >> (64 - digits) })
	for d := range 1 << digits {
		sortBucket(sorted[starts[d]:starts[d+1]], items[starts[d]:starts[d+1]])
	}
	return sorted
}

// sortBucket sorts few items, with space for as many.
func sortBucket(items, space []item) {
	same := len(items) >= 32
	for i := range items {
		same = same && items[i].hi == items[0].hi
	}
	if !same {
		slices.SortFunc(items, byKey)
		return
	}
	const digits = 6
	var counts [1<<digits + 1]int32
	_, starts := scatter(items, space, counts[:], func(i *item) uint64 { return i.lo >> (64 - digits) })
	copy(items, space)
	for d := range 1 << digits {
		slices.SortFunc(items[starts[d]:starts[d+1]], byKey)
	}
}

// scatter puts items into another slice by a digit. Starts are zero at first,
// then where each digit begins.
func scatter(items, to []item, starts []int32, digit func(*item) uint64) ([]item, []int32) {
	for i := range items {
		starts[digit(&items[i])+1]++
	}
	for d := range len(starts) - 1 {
		starts[d+1] += starts[d]
	}
	for i := range items {
		d := digit(&items[i])
		to[starts[d]] = items[i]
		starts[d]++
	}
	copy(starts[1:], starts)
	starts[0] = 0
	return to, starts
}

// byKey leaves nothing to the order in which endpoints of equal hashes came.
func byKey(a, b item) int {
	switch {
	case a.less(b.key):
		return -1
	case b.less(a.key):
		return 1
	}
	return cmp.Compare(a.id, b.id)
}
