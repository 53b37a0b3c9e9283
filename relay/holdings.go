package relay

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// delivery is a resource as clients get it. It never changes, and clients with the same resource share it.
type delivery struct {
	item   *item
	change uint64 // identifies the change by hdsd; 0: none
}

func (s *delivery) name() string { return s.item.body.name }

// equal reports whether two deliveries are of the same resource with the same change; nil is none.
func (s *delivery) equal(x *delivery) bool {
	return s == x || s != nil && x != nil && s.change == x.change && s.item.sameResource(x.item)
}

// seed makes hashes different in each process, so that nobody can choose texts with equal hashes.
var seed = maphash.MakeSeed()

// holdings are the latest deliveries of a client, by name. They are a hash table of pointers, which takes
// a sixth of the memory of a map: each client has its own. The zero value is empty.
type holdings struct {
	slots []*delivery // by the hash of the name, with linear probing
	count int
}

// slot returns the slot of a name, or the free slot for it. There has to be a free slot.
func (h *holdings) slot(hash uint64, name string) int {
	i := h.home(hash)
	for {
		s := h.slots[i]
		if s == nil || s.item.body.hash == hash && s.name() == name {
			return i
		}
		i = h.after(i)
	}
}

// home returns the slot where the search for a hash begins.
func (h *holdings) home(hash uint64) int {
	high, _ := bits.Mul64(hash, uint64(len(h.slots)))
	return int(high)
}

func (h *holdings) after(slot int) int {
	if slot++; slot < len(h.slots) {
		return slot
	}
	return 0
}

// get returns the delivery of a name; nil: there is none.
func (h *holdings) get(name string) *delivery {
	if h.count == 0 {
		return nil
	}
	return h.slots[h.slot(maphash.String(seed, name), name)]
}

// put sets the delivery of its name, and returns the one before.
func (h *holdings) put(s *delivery) (previous *delivery) {
	h.reserve(1)
	return h.set(s)
}

// set is put without a look at the room.
func (h *holdings) set(s *delivery) (previous *delivery) {
	slot := &h.slots[h.slot(s.item.body.hash, s.name())]
	if previous = *slot; previous == nil {
		h.count++
	}
	*slot = s
	return previous
}

// remove removes a name, and returns its delivery.
func (h *holdings) remove(name string) (previous *delivery) {
	if h.count == 0 {
		return nil
	}
	free := h.slot(maphash.String(seed, name), name)
	if previous = h.slots[free]; previous == nil {
		return nil
	}
	h.slots[free] = nil
	h.count--
	for i := h.after(free); h.slots[i] != nil; i = h.after(i) { // move up deliveries that had to go further
		if home := h.home(h.slots[i].item.body.hash); h.distance(home, i) >= h.distance(free, i) {
			h.slots[free], h.slots[i] = h.slots[i], nil
			free = i
		}
	}
	if len(h.slots) > 8*h.count {
		h.resize(h.count)
	}
	return previous
}

// distance returns the number of slots from one to another.
func (h *holdings) distance(first, second int) int {
	if second >= first {
		return second - first
	}
	return second - first + len(h.slots)
}

// reserve makes room for more names. A quarter of the slots stays free.
func (h *holdings) reserve(count int) {
	if need := h.count + count; 4*need > 3*len(h.slots) {
		h.resize(max(need, len(h.slots)))
	}
}

// resize makes a table for a number of names.
func (h *holdings) resize(names int) {
	slots := h.slots
	h.slots = make([]*delivery, (4*names+2)/3+1)
	for _, s := range slots {
		if s != nil {
			h.slots[h.slot(s.item.body.hash, s.name())] = s
		}
	}
}

// all yields the deliveries, in any order. The holdings must not change meanwhile.
func (h *holdings) all() iter.Seq[*delivery] {
	return func(yield func(*delivery) bool) {
		for _, s := range h.slots {
			if s != nil && !yield(s) {
				return
			}
		}
	}
}
