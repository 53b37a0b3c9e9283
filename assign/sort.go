package assign

import (
	"cmp"
	"math/bits"
	"slices"
)

// sortItems sorts by key. It gives another slice.
func sortItems(items []item) []item {
	sorted := make([]item, len(items))
	starts := deal(items, sorted, make([]int32, 1<<digitsFor(len(items), 16)+1))
	for d := range len(starts) - 1 {
		sortWith(sorted[starts[d]:starts[d+1]], items[starts[d]:starts[d+1]])
	}
	return sorted
}

// sortWith sorts items in place, with space for as many.
func sortWith(items, space []item) {
	if len(items) <= 24 {
		insertionSort(items)
		return
	}
	const most = 6
	var few [1<<most + 1]int32
	starts := deal(items, space, few[:1<<digitsFor(len(items), most)+1])
	copy(items, space)
	if len(starts) == 2 { // all have the same key
		slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.id, b.id) })
		return
	}
	for d := range len(starts) - 1 {
		sortWith(items[starts[d]:starts[d+1]], space[starts[d]:starts[d+1]])
	}
}

// digitsFor gives how many binary digits part a list into parts of a few.
func digitsFor(length, most int) int { return max(min(bits.Len(uint(length))-2, most), 1) }

// deal puts items into another slice by the first bits in which they differ, and
// tells where those with equal bits begin, in starts or what it needs of it.
func deal(items, to []item, starts []int32) []int32 {
	var hi, lo uint64
	for i := range items {
		hi |= items[i].hi ^ items[0].hi
		lo |= items[i].lo ^ items[0].lo
	}
	width := bits.Len64(hi)
	if hi == 0 {
		width = bits.Len64(lo)
	}
	digits := min(bits.Len(uint(len(starts)-1))-1, width)
	shift, mask := width-digits, uint64(1)<<digits-1
	starts = starts[:1<<digits+1]
	if hi == 0 {
		return scatter(items, to, starts, func(i *item) uint64 { return i.lo >> shift & mask })
	}
	return scatter(items, to, starts, func(i *item) uint64 { return i.hi >> shift & mask })
}

// scatter puts a list into another by a digit. Starts are zero at first, then
// where each digit begins, and the end.
func scatter[T any](list, to []T, starts []int32, digit func(*T) uint64) []int32 {
	for i := range list {
		starts[digit(&list[i])+1]++
	}
	for d := range len(starts) - 1 {
		starts[d+1] += starts[d]
	}
	for i := range list {
		d := digit(&list[i])
		to[starts[d]] = list[i]
		starts[d]++
	}
	copy(starts[1:], starts)
	starts[0] = 0
	return starts
}

// insertionSort leaves nothing to the order in which endpoints of equal hashes
// came.
func insertionSort(items []item) {
	for n := 1; n < len(items); n++ {
		i, at := items[n], n
		for ; at > 0 && (i.less(items[at-1].key) || i.key == items[at-1].key && i.id < items[at-1].id); at-- {
			items[at] = items[at-1]
		}
		items[at] = i
	}
}
