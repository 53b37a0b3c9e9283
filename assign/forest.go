package assign

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"

	"hdsd/assign/internal/rendezvous"
	"hdsd/assign/internal/trie"
	"hdsd/assign/internal/zone"
	"hdsd/health"
)

// forest divides endpoints into leaves by one trie for each kind, and leaves into
// units. It knows which endpoints are in a unit, never who checks it. Endpoints that
// move between units keep their seats.
type forest struct {
	zones     *zone.Table
	kinds     *kinds
	endpoints *endpoints
	seats     *seats

	unitLimit int // upper bound of unitSize, from Options.Unit
	unitSize  int // maximum of endpoints in a unit, for the present size of the fleet

	pending []trie.Item // endpoints to be put into units
	brought seatLists   // seats of the endpoints that are pending
	hollow  []*kind     // kinds that may have empty units

	groups []group // groups of the leaf being made, by own zone
	spare  []int32
	onUnit func(i int32) // called for each new unit
}

// group describes the endpoints of one zone while a leaf is made.
type group struct {
	seed int32 // number of their seats in seatLists, or none
	size int
	unit int32
}

// groupOf returns the group of a zone, or of the endpoints without a zone.
func (f *forest) groupOf(zone int32) *group { return &f.groups[zone+1] }

// grow makes room for all zones.
func (f *forest) grow() {
	for len(f.groups) <= f.zones.Len() {
		f.groups = append(f.groups, group{})
	}
}

// reserve makes room for endpoints that are about to be added.
func (f *forest) reserve(n int) { f.pending = make([]trie.Item, 0, n) }

// add queues an endpoint of a kind for divide. The item's seed numbers the endpoint's earlier
// seats and substitutes.
func (f *forest) add(i trie.Item, k *kind) {
	f.pending = append(f.pending, i)
	f.count(k, i.Zone, 1)
}

// bring returns a number for an endpoint's earlier seats and substitutes.
func (f *forest) bring(seats, substitutes []int32) (seed int32) {
	return f.brought.add(seats, substitutes)
}

// withdraw removes an endpoint from the queue, and returns its seed.
func (f *forest) withdraw(id health.EndpointID) (seed int32) {
	i := slices.IndexFunc(f.pending, func(i trie.Item) bool { return i.ID == id })
	item := f.pending[i]
	f.pending = slices.Delete(f.pending, i, i+1)
	f.count(f.kinds.get(item.Kind), item.Zone, -1)
	return item.Seed
}

// remove takes an endpoint out of its unit.
func (f *forest) remove(id health.EndpointID) {
	i := f.endpoints.unit(id)
	u := f.seats.unit(i)
	k, zone := u.kind, u.zone
	f.seats.remove(i, id, f.endpoints.hash(id))
	f.count(k, zone, -1)
	if len(u.members) == 0 && !k.hollow {
		k.hollow = true
		f.hollow = append(f.hollow, k)
	}
}

// count adds n endpoints of a kind in a zone to its counts.
func (f *forest) count(k *kind, zone, n int32) {
	k.add(zone, n)
	f.zones.Occupy(zone, n)
}

// divide puts the queued endpoints into units, whose size suits the number of checkers, and
// removes empty units. It calls onUnit for each new unit.
func (f *forest) divide(checkers int, onUnit func(i int32)) {
	f.onUnit = onUnit
	for _, k := range f.hollow {
		f.clean(k)
		k.hollow = false
	}
	f.hollow = f.hollow[:0]
	waiting := f.byKind()
	if f.resize(checkers) {
		for n, k := range f.kinds.byNumber() {
			if k != nil {
				f.rebuild(k, waiting[n])
			}
		}
	} else {
		for n := range waiting {
			if len(waiting[n]) > 0 {
				f.graft(f.kinds.get(int32(n)), waiting[n])
			}
		}
	}
	f.pending, f.brought, f.onUnit = nil, seatLists{}, nil
}

// clean removes the empty units of a kind.
func (f *forest) clean(k *kind) {
	for n := range k.leaves {
		l, last := &k.leaves[n], int32(none)
		for i := l.first; i != none; {
			u := f.seats.unit(i)
			next := u.next
			if len(u.members) == 0 {
				f.link(l, last, next)
				f.seats.dissolve(i)
			} else {
				last = i
			}
			i = next
		}
	}
	k.leaves = slices.DeleteFunc(k.leaves, func(l leaf) bool { return l.first == none })
}

// byKind divides the queued endpoints by the number of their kind.
func (f *forest) byKind() [][]trie.Item {
	parts := make([][]trie.Item, f.kinds.len())
	starts := make([]int, f.kinds.len()+1)
	for i := range f.pending {
		starts[f.pending[i].Kind+1]++
	}
	for k := range parts {
		if starts[k+1] == len(f.pending) { // all endpoints have one kind
			parts[k] = f.pending
			return parts
		}
		starts[k+1] += starts[k]
	}
	sorted, next := make([]trie.Item, len(f.pending)), slices.Clone(starts)
	for i := range f.pending {
		k := f.pending[i].Kind
		sorted[next[k]] = f.pending[i]
		next[k]++
	}
	for k := range parts {
		parts[k] = sorted[starts[k]:starts[k+1]:starts[k+1]]
	}
	return parts
}

// graft adds endpoints to the present trie of a kind.
func (f *forest) graft(k *kind, pending []trie.Item) {
	leaves := k.leaves
	k.leaves = make([]leaf, 0, len(leaves)+1)
	pending = trie.Sort(pending)
	i := 0
	for len(pending) > 0 {
		first := pending[0].Key
		for i < len(leaves) && leaves[i].Before(first) {
			k.leaves = append(k.leaves, leaves[i])
			i++
		}
		node, taken := locate(leaves, i, first)
		n := 1
		for n < len(pending) && node.Contains(pending[n].Key) {
			n++
		}
		items := pending[:n:n]
		if taken {
			items = trie.Sort(f.gather(slices.Clone(items), leaves[i]))
			i++
		}
		f.cut(k, node, items)
		pending = pending[n:]
	}
	k.leaves = append(k.leaves, leaves[i:]...)
}

// locate finds the place of a key: leaf i, or an empty part of the trie between
// leaves i-1 and i.
func locate(leaves []leaf, i int, k trie.Key) (node trie.Node, taken bool) {
	var left, right *trie.Node
	if i < len(leaves) {
		if right = &leaves[i].Node; right.Contains(k) {
			return *right, true
		}
	}
	if i > 0 {
		left = &leaves[i-1].Node
	}
	return trie.Gap(k, left, right), false
}

// rebuild makes all units of a kind again.
func (f *forest) rebuild(k *kind, items []trie.Item) {
	news := len(items)
	items = slices.Grow(items, k.count-news)
	var space []trie.Item
	for _, l := range k.leaves {
		start := len(items)
		items = f.gather(items, l)
		n := len(items) - start
		space = slices.Grow(space[:0], n)
		trie.SortInPlace(items[start:], space[:n])
	}
	k.leaves = k.leaves[:0]
	if news > 0 { // otherwise the leaves are in order already
		items = trie.Sort(items)
	}
	const zones = 8 // even with more zones, few leaves have endpoints in more than these
	f.seats.reserve(min(len(items), len(items)/f.unitSize*min(f.zones.Len(), zones)))
	if len(items) > 0 {
		f.cut(k, trie.Node{}, items)
	}
}

// gather appends a leaf's endpoints, and dissolves its units. It notes endpoints
// without seats as changed, since their next unit may have seats.
func (f *forest) gather(items []trie.Item, l leaf) []trie.Item {
	for i := l.first; i != none; {
		u := f.seats.unit(i)
		seed := f.brought.add(u.seats, u.substitutes)
		for _, id := range u.members {
			if seed == none {
				f.endpoints.mark(id, isNew)
			}
			items = append(items, trie.Item{Key: f.endpoints.key(id), ID: id, Seed: seed, Kind: u.kind.number, Zone: u.zone})
		}
		next := u.next
		f.seats.dissolve(i)
		i = next
	}
	return items
}

// resize sets the most endpoints of a unit to a power of two: about a twelfth of the
// mean load, and at most a ninth. It shrinks units at once, but enlarges them late,
// since joining leaves only saves time. It reports whether the size changed.
func (f *forest) resize(checkers int) bool {
	checks := 0
	for _, k := range f.kinds.inOrder() {
		checks += k.count * min(k.wants(), checkers)
	}
	twelfth := checks / max(checkers, 1) / 12
	if checkers == 0 {
		twelfth = f.unitLimit
	}
	limit := 1 << max(bits.Len(uint(min(twelfth*4/3, f.unitLimit)))-1, 0)
	late := limit > f.unitSize && twelfth < 3*f.unitSize && !f.seats.empty()
	if limit == f.unitSize || late {
		return false
	}
	f.unitSize = limit
	return true
}

// units lists all units, kind by kind.
func (f *forest) units() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, k := range f.kinds.inOrder() {
			for i := range f.unitsOf(k) {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// unitsOf lists the units of a kind, in order.
func (f *forest) unitsOf(k *kind) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, l := range k.leaves {
			for i := l.first; i != none; i = f.seats.unit(i).next {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// inOrder compares two units by their content, not by their numbers.
func (f *forest) inOrder(a, b int32) int {
	u, v := f.seats.unit(a), f.seats.unit(b)
	if u.kind != v.kind {
		if c := cmp.Compare(u.kind.hash, v.kind.hash); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(u.Prefix.Hi, v.Prefix.Hi), cmp.Compare(u.Prefix.Lo, v.Prefix.Lo),
		cmp.Compare(u.Depth, v.Depth), f.zones.Compare(u.zone, v.zone))
}

// leafHash returns the hash by which a leaf ranks zones and checkers. It ignores
// redundancy, rate and placement, so a change of these moves only what must move.
func leafHash(k *kind, node trie.Node) uint64 {
	return rendezvous.Score(rendezvous.Score(k.class.hash, node.Prefix.Hi), node.Prefix.Lo)
}
