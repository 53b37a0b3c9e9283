package assign

import (
	"cmp"
	"maps"
	"slices"

	"hdsd/health"
)

// restored holds the part of a stored plan that no endpoint has claimed yet. For each
// hash, in order, it has the slots with a seat there.
type restored struct {
	hashes  []uint64
	slots   []int32 // none if claimed
	claimed int
	list    []int32 // result of claim
}

// fill stores a plan; slot returns each checker's slot.
func (r *restored) fill(plan map[string][]health.Hash, slot func(id string) int32) {
	type seat struct {
		hash uint64
		slot int32
	}
	var seats []seat
	for _, id := range slices.Sorted(maps.Keys(plan)) {
		s := slot(id)
		for _, hash := range plan[id] {
			seats = append(seats, seat{uint64(hash), s})
		}
	}
	slices.SortFunc(seats, func(a, b seat) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.slot, b.slot))
	})
	seats = slices.Compact(seats)
	*r = restored{hashes: make([]uint64, len(seats)), slots: make([]int32, len(seats))}
	for i, s := range seats {
		r.hashes[i], r.slots[i] = s.hash, s.slot
	}
}

// empty reports whether nothing is left.
func (r *restored) empty() bool { return len(r.hashes) == 0 }

// claim removes the slots at an endpoint's hash, and returns those for which counts
// is true. The list is valid until the next call.
func (r *restored) claim(hash uint64, counts func(slot int32) bool) []int32 {
	at, found := slices.BinarySearch(r.hashes, hash)
	if !found {
		return nil
	}
	r.list = r.list[:0]
	for ; at < len(r.hashes) && r.hashes[at] == hash; at++ {
		if s := r.slots[at]; s != none {
			if counts(s) && len(r.list) < maxRedundancy {
				r.list = append(r.list, s)
			}
			r.slots[at] = none
			r.claimed++
		}
	}
	return r.list
}

// compact removes claimed entries once they are half of all.
func (r *restored) compact() {
	if len(r.hashes) == 0 || r.claimed*2 < len(r.hashes) {
		return
	}
	left := restored{}
	for i, s := range r.slots {
		if s != none {
			left.hashes, left.slots = append(left.hashes, r.hashes[i]), append(left.slots, s)
		}
	}
	*r = left
}
