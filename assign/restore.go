package assign

import (
	"cmp"
	"maps"
	"slices"

	"hdsd/health"
)

// restored is what of a stored plan no endpoint has claimed yet: for each hash,
// in order, the slots that have a seat at it.
type restored struct {
	hashes  []uint64
	slots   []int32 // none where it was claimed
	claimed int
}

// Restore gives the seats of a stored plan to their checkers: endpoints that
// are upserted later take theirs up. It comes before anything else.
func (p *Planner) Restore(plan map[string][]health.Hash) {
	type seat struct {
		hash uint64
		slot int32
	}
	var seats []seat
	for _, id := range slices.Sorted(maps.Keys(plan)) {
		s, ok := p.index[id]
		if !ok {
			s = p.open(id)
		}
		for _, hash := range plan[id] {
			seats = append(seats, seat{uint64(hash), s})
		}
	}
	slices.SortFunc(seats, func(a, b seat) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.slot, b.slot))
	})
	seats = slices.Compact(seats)
	r := restored{hashes: make([]uint64, len(seats)), slots: make([]int32, len(seats))}
	for i, s := range seats {
		r.hashes[i], r.slots[i] = s.hash, s.slot
	}
	p.restored = r
}

// claim takes the stored seats of an endpoint out, those of checkers that
// still have theirs. What it gives is valid until the next call.
func (p *Planner) claim(hash uint64) []int32 {
	r := &p.restored
	at, found := slices.BinarySearch(r.hashes, hash)
	if !found {
		return nil
	}
	list := p.scratch.slots[:0]
	for ; at < len(r.hashes) && r.hashes[at] == hash; at++ {
		if s := r.slots[at]; s != none {
			if p.slots[s].seated && len(list) < maxRedundancy {
				list = append(list, s)
			}
			r.slots[at] = none
			r.claimed++
		}
	}
	p.scratch.slots = list
	return list
}

// compact forgets what was claimed once that is half of it.
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
