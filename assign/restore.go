package assign

import (
	"cmp"
	"iter"
	"maps"
	"math/bits"
	"slices"

	"hdsd/health"
)

// restored holds the part of a stored plan that no endpoint has claimed yet: for each hash, the
// slots with a seat there. At a start, a million endpoints claim theirs. So a seat is found by
// the first bits of its hash, which are as good as random.
type restored struct {
	seats   []restoredSeat // by hash and slot
	first   []int32        // by the first bits of hashes: their first seat; at last the number of seats
	shift   int            // of a hash, so that its first bits are left
	claimed int
	list    []int32 // result of claim
}

type restoredSeat struct {
	hash uint64
	slot int32 // none if claimed
}

// fill stores a plan; slot returns each checker's slot.
func (r *restored) fill(plan map[string][]health.Hash, slot func(id string) int32) {
	ids := slices.Sorted(maps.Keys(plan))
	slots := make([]int32, len(ids))
	size := 0
	for i, id := range ids {
		slots[i] = slot(id)
		size += len(plan[id])
	}
	each := func(yield func(restoredSeat) bool) {
		for i, id := range ids {
			for _, hash := range plan[id] {
				if !yield(restoredSeat{uint64(hash), slots[i]}) {
					return
				}
			}
		}
	}
	*r = restored{seats: make([]restoredSeat, size)}
	r.index(size, each)
	next := slices.Clone(r.first)
	for s := range each {
		at := &next[s.hash>>r.shift]
		r.seats[*at] = s
		*at++
	}
	for i := range r.first[1:] {
		r.sort(r.seats[r.first[i]:r.first[i+1]])
	}
}

// sort sorts seats of the same first bits. It keeps one of those that are the same.
func (r *restored) sort(seats []restoredSeat) {
	slices.SortFunc(seats, func(a, b restoredSeat) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.slot, b.slot))
	})
	for i := len(seats) - 1; i > 0; i-- {
		if seats[i] == seats[i-1] {
			seats[i].slot = none
			r.claimed++
		}
	}
}

// index counts the seats by their first bits, so that few have the same.
func (r *restored) index(size int, each iter.Seq[restoredSeat]) {
	const together, most = 64, 16 // seats with the same first bits; bits
	number := min(bits.Len(uint(size/together)), most)
	r.shift, r.first = 64-number, make([]int32, 1<<number+1)
	for s := range each {
		r.first[s.hash>>r.shift+1]++
	}
	for i := range r.first[1:] {
		r.first[i+1] += r.first[i]
	}
}

// empty reports whether nothing is left.
func (r *restored) empty() bool { return len(r.seats) == 0 }

// claim removes the slots at an endpoint's hash, and returns those for which counts
// is true. The list is valid until the next call.
func (r *restored) claim(hash uint64, counts func(slot int32) bool) []int32 {
	if r.empty() {
		return nil
	}
	alike := r.seats[r.first[hash>>r.shift]:r.first[hash>>r.shift+1]]
	at, found := slices.BinarySearchFunc(alike, hash, func(s restoredSeat, hash uint64) int { return cmp.Compare(s.hash, hash) })
	if !found {
		return nil
	}
	r.list = r.list[:0]
	for ; at < len(alike) && alike[at].hash == hash; at++ {
		if s := alike[at].slot; s != none {
			if counts(s) && len(r.list) < maxRedundancy {
				r.list = append(r.list, s)
			}
			alike[at].slot = none
			r.claimed++
		}
	}
	return r.list
}

// compact removes claimed entries once they are half of all.
func (r *restored) compact() {
	if r.empty() || r.claimed*2 < len(r.seats) {
		return
	}
	left := restored{}
	for _, s := range r.seats {
		if s.slot != none {
			left.seats = append(left.seats, s)
		}
	}
	left.index(len(left.seats), slices.Values(left.seats))
	*r = left
}
