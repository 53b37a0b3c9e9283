package relay

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// sent is a resource as clients are sent it. It never changes, and there is one for all
// that are sent the same.
type sent struct {
	item   *item
	change uint64 // what stands for what hdsd changed; 0: nothing
}

func (s *sent) name() string { return s.item.body.name }

// is reports whether two are the same resource with the same change; nil is none.
func (s *sent) is(other *sent) bool {
	return s == other || s != nil && other != nil && s.change == other.change && s.item.like(other.item)
}

// seed makes hashes of what others say different in each process, so that nobody can choose
// what has the same one.
var seed = maphash.MakeSeed()

// holdings are what a client has of a type, by name. Each client has its own: it is a hash
// table of pointers, which takes a sixth of the memory of a map. The zero value is empty.
type holdings struct {
	slots []*sent // where the hash of the name says, or in the next free slot
	count int
}

// at returns the slot of a name, or the free one where it belongs. There has to be a free one.
func (h *holdings) at(hash uint64, name string) int {
	i := h.home(hash)
	for {
		s := h.slots[i]
		if s == nil || s.item.body.hash == hash && s.name() == name {
			return i
		}
		i = h.after(i)
	}
}

// home is the slot where the search for a hash begins.
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

// get returns what is held under a name; nil: nothing.
func (h *holdings) get(name string) *sent {
	if h.count == 0 {
		return nil
	}
	return h.slots[h.at(maphash.String(seed, name), name)]
}

// put notes what is held under its name now, and returns what was.
func (h *holdings) put(s *sent) (before *sent) {
	h.reserve(1)
	return h.set(s)
}

// set is put where there is room.
func (h *holdings) set(s *sent) (before *sent) {
	slot := &h.slots[h.at(s.item.body.hash, s.name())]
	if before = *slot; before == nil {
		h.count++
	}
	*slot = s
	return before
}

// take notes what is held in another table, too, and returns what was held under its names. It
// makes room once: in a table that grows, names that come in the order of their hashes would
// all begin to search at its start.
func (h *holdings) take(from *holdings) (before []*sent) {
	more := 0
	for s := range from.all() {
		if h.get(s.name()) == nil {
			more++
		}
	}
	h.reserve(more)
	for s := range from.all() {
		if was := h.set(s); was != nil {
			before = append(before, was)
		}
	}
	return before
}

// remove removes a name, and returns what was held under it.
func (h *holdings) remove(name string) (before *sent) {
	if h.count == 0 {
		return nil
	}
	free := h.at(maphash.String(seed, name), name)
	if before = h.slots[free]; before == nil {
		return nil
	}
	h.slots[free] = nil
	h.count--
	for i := h.after(free); h.slots[i] != nil; i = h.after(i) { // those that follow may belong here
		if home := h.home(h.slots[i].item.body.hash); h.distance(home, i) >= h.distance(free, i) {
			h.slots[free], h.slots[i] = h.slots[i], nil
			free = i
		}
	}
	if len(h.slots) > 8*h.count {
		h.resize(h.count)
	}
	return before
}

// distance is how many slots after another one a slot is.
func (h *holdings) distance(from, to int) int {
	if to >= from {
		return to - from
	}
	return to - from + len(h.slots)
}

// reserve makes room for more names: of the slots, a quarter stays free.
func (h *holdings) reserve(more int) {
	if need := h.count + more; 4*need > 3*len(h.slots) {
		h.resize(max(need, len(h.slots)))
	}
}

// resize makes room for so many names.
func (h *holdings) resize(names int) {
	all := h.slots
	h.slots = make([]*sent, (4*names+2)/3+1)
	for _, s := range all {
		if s != nil {
			h.slots[h.at(s.item.body.hash, s.name())] = s
		}
	}
}

// all goes through what is held, in any order. It must not change meanwhile.
func (h *holdings) all() iter.Seq[*sent] {
	return func(yield func(*sent) bool) {
		for _, s := range h.slots {
			if s != nil && !yield(s) {
				return
			}
		}
	}
}
