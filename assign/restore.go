package assign

import (
	"cmp"
	"iter"
	"maps"
	"math/bits"
	"slices"

	"hdsd/health"
)

// restored holds the unclaimed part of a stored plan: for each hash, the slots with a seat
// there. At a start, a million endpoints claim theirs. So a seat is found by the first bits of
// its hash, which are as good as random.
type restored struct {
	seats   []restoredSeat // by hash and slot
	first   []int32        // by the first bits of hashes: their first seat; at last the number of seats
	shift   int            // drops all but the first bits of a hash
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
	allSeats := func(yield func(restoredSeat) bool) {
		for i, id := range ids {
			for _, hash := range plan[id] {
				if !yield(restoredSeat{uint64(hash), slots[i]}) {
					return
				}
			}
		}
	}
	*r = restored{seats: make([]restoredSeat, size)}
	r.index(size, allSeats)
	ends := slices.Clone(r.first)
	for s := range allSeats {
		end := &ends[s.hash>>r.shift]
		r.seats[*end] = s
		*end++
	}
	for i := range r.first[1:] {
		r.sort(r.seats[r.first[i]:r.first[i+1]])
	}
}

// sort sorts seats with equal first bits, and removes duplicates.
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

// index counts the seats by their first bits, so that few share a bucket.
func (r *restored) index(size int, all iter.Seq[restoredSeat]) {
	const perBucket, maxBits = 64, 16 // seats per bucket; bits
	number := min(bits.Len(uint(size/perBucket)), maxBits)
	r.shift, r.first = 64-number, make([]int32, 1<<number+1)
	for s := range all {
		r.first[s.hash>>r.shift+1]++
	}
	for i := range r.first[1:] {
		r.first[i+1] += r.first[i]
	}
}

// empty reports whether every seat is claimed.
func (r *restored) empty() bool { return len(r.seats) == 0 }

// claim removes the slots at an endpoint's hash, and returns those for which counts
// is true. The list is valid until the next call.
func (r *restored) claim(hash uint64, counts func(slot int32) bool) []int32 {
	if r.empty() {
		return nil
	}
	alike := r.seats[r.first[hash>>r.shift]:r.first[hash>>r.shift+1]]
	index, found := slices.BinarySearchFunc(alike, hash, func(s restoredSeat, hash uint64) int { return cmp.Compare(s.hash, hash) })
	if !found {
		return nil
	}
	r.list = r.list[:0]
	for ; index < len(alike) && alike[index].hash == hash; index++ {
		if s := alike[index].slot; s != none {
			if counts(s) && len(r.list) < maxRedundancy {
				r.list = append(r.list, s)
			}
			alike[index].slot = none
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
	unclaimed := restored{}
	for _, s := range r.seats {
		if s.slot != none {
			unclaimed.seats = append(unclaimed.seats, s)
		}
	}
	unclaimed.index(len(unclaimed.seats), slices.Values(unclaimed.seats))
	*r = unclaimed
}
