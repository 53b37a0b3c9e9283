package trie

import (
	"cmp"
	"math/bits"
	"slices"
)

// Sort sorts items by key, then by id, and returns them in a new slice.
func Sort(items []Item) []Item {
	sorted := make([]Item, len(items))
	starts := distribute(items, sorted, make([]int32, 1<<digitsFor(len(items), 16)+1))
	for d := range len(starts) - 1 {
		SortInPlace(sorted[starts[d]:starts[d+1]], items[starts[d]:starts[d+1]])
	}
	return sorted
}

// SortInPlace sorts items in place. space has at least as much room.
func SortInPlace(items, space []Item) {
	if len(items) <= 24 {
		insertionSort(items)
		return
	}
	const maxDigits = 6
	var buffer [1<<maxDigits + 1]int32
	starts := distribute(items, space, buffer[:1<<digitsFor(len(items), maxDigits)+1])
	copy(items, space)
	if len(starts) == 2 { // all have the same key
		slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(a.ID, b.ID) })
		return
	}
	for d := range len(starts) - 1 {
		SortInPlace(items[starts[d]:starts[d+1]], space[starts[d]:starts[d+1]])
	}
}

// digitsFor returns how many binary digits divide a list into parts of a few items.
func digitsFor(length, limit int) int { return max(min(bits.Len(uint(length))-2, limit), 1) }

// distribute copies items into another slice, ordered by the first bits in which they
// differ. It returns where each run of equal bits begins, in the memory of starts.
func distribute(items, target []Item, starts []int32) []int32 {
	var hi, lo uint64
	for i := range items {
		hi |= items[i].Hi ^ items[0].Hi
		lo |= items[i].Lo ^ items[0].Lo
	}
	width := bits.Len64(hi)
	if hi == 0 {
		width = bits.Len64(lo)
	}
	digits := min(bits.Len(uint(len(starts)-1))-1, width)
	shift, mask := width-digits, uint64(1)<<digits-1
	starts = starts[:1<<digits+1]
	if hi == 0 {
		return Scatter(items, target, starts, func(i *Item) uint64 { return i.Lo >> shift & mask })
	}
	return Scatter(items, target, starts, func(i *Item) uint64 { return i.Hi >> shift & mask })
}

// Scatter copies a list into another in the order of a digit (counting sort). starts
// must be zero. It returns where each digit begins, and the end.
func Scatter[T any](list, target []T, starts []int32, digit func(*T) uint64) []int32 {
	for i := range list {
		starts[digit(&list[i])+1]++
	}
	for d := range len(starts) - 1 {
		starts[d+1] += starts[d]
	}
	for i := range list {
		d := digit(&list[i])
		target[starts[d]] = list[i]
		starts[d]++
	}
	copy(starts[1:], starts)
	starts[0] = 0
	return starts
}

// insertionSort sorts a few items by key, then by id.
func insertionSort(items []Item) {
	for n := 1; n < len(items); n++ {
		i, index := items[n], n
		for ; index > 0 && (i.Less(items[index-1].Key) || i.Key == items[index-1].Key && i.ID < items[index-1].ID); index-- {
			items[index] = items[index-1]
		}
		items[index] = i
	}
}
