package assign

import (
	"cmp"
	"encoding/binary"
	"slices"

	"hdsd/assign/internal/trie"
	"hdsd/health"
)

// zonesOfLeaf bounds the size of a leaf with several zones, in multiples of the size
// of a unit.
const zonesOfLeaf = 2

// cut makes leaves from sorted endpoints in a part of a kind's trie. It makes as few
// leaves as it can: each is small, and endpoints of one zone bring the same seats.
func (f *forest) cut(k *kind, node trie.Node, items []trie.Item) {
	trie.Cut(node, items,
		func(items []trie.Item) bool { return f.small(items) && f.uniform(items) },
		func(node trie.Node, items []trie.Item) { f.addLeaf(k, node, items) })
}

// small reports whether endpoints are few enough for one leaf, and those of each zone
// for one unit.
func (f *forest) small(items []trie.Item) bool {
	if len(items) <= f.unitSize || len(items) > zonesOfLeaf*f.unitSize {
		return len(items) <= f.unitSize
	}
	largest := 0
	for i := range items {
		g := f.groupOf(items[i].Zone)
		g.size++
		largest = max(largest, g.size)
	}
	for i := range items {
		f.groupOf(items[i].Zone).size = 0
	}
	return largest <= f.unitSize
}

// uniform reports whether all endpoints of one zone that bring seats bring the same.
func (f *forest) uniform(items []trie.Item) bool {
	if !slices.ContainsFunc(items, func(i trie.Item) bool { return i.Seed != none }) {
		return true
	}
	for i := range f.groups {
		f.groups[i].seed = none
	}
	for i := range items {
		if s := items[i].Seed; s != none {
			switch g := f.groupOf(items[i].Zone); g.seed {
			case none:
				g.seed = s
			case s:
			default:
				return false
			}
		}
	}
	return true
}

// addLeaf makes a leaf with one unit for each zone.
func (f *forest) addLeaf(k *kind, node trie.Node, items []trie.Item) {
	zones := f.spare[:0]
	for i := range items {
		g := f.groupOf(items[i].Zone)
		if g.size == 0 {
			g.seed = none
			zones = append(zones, items[i].Zone)
		}
		g.size++
		if g.seed == none {
			g.seed = items[i].Seed
		}
	}
	slices.SortFunc(zones, f.zones.Compare)
	f.spare = zones
	l := leaf{Node: node, hash: leafHash(k, node), first: none, ranking: &ranking{}}
	last := int32(none)
	members := make([]health.EndpointID, len(items))
	for _, z := range zones {
		g := f.groupOf(z)
		g.unit = f.seats.add(unit{Node: node, kind: k, hash: l.hash, ranking: l.ranking, zone: z, next: none, members: members[:0:g.size]})
		f.link(&l, last, g.unit)
		last = g.unit
		members = members[g.size:]
		g.size = 0
	}
	for i := range items {
		n := f.groupOf(items[i].Zone).unit
		u := f.seats.unit(n)
		u.members = append(u.members, items[i].ID)
		u.sum += items[i].Lo
		f.endpoints.setUnit(items[i].ID, n)
	}
	for _, z := range zones {
		g := f.groupOf(z)
		if g.seed != none {
			f.seats.give(g.unit, f.brought.lists[g.seed])
		}
		f.onUnit(g.unit)
	}
	k.leaves = append(k.leaves, l)
}

// link appends a unit after the last unit of a leaf.
func (f *forest) link(l *leaf, last, i int32) {
	if last == none {
		l.first = i
	} else {
		f.seats.unit(last).next = i
	}
}

// halve cuts a unit's leaf in two, and each of its units with it. All units keep
// their checkers. It returns the unit's halves, or false if all endpoints of the leaf
// are alike. It calls added for each new unit.
func (f *forest) halve(i int32, added func(part int32)) (halves []int32, ok bool) {
	k := f.seats.unit(i).kind
	index, _ := slices.BinarySearchFunc(k.leaves, f.seats.unit(i).Prefix, func(l leaf, k trie.Key) int {
		return cmp.Or(cmp.Compare(l.Prefix.Hi, k.Hi), cmp.Compare(l.Prefix.Lo, k.Lo))
	})
	units, low, high := f.span(k.leaves[index])
	if low == high {
		return []int32{i}, false
	}
	depth := low.Common(high)
	var leaves [2]leaf
	for side, key := range [2]trie.Key{low, high} {
		n := trie.NodeOf(key, depth+1)
		leaves[side] = leaf{Node: n, hash: leafHash(k, n), first: none, ranking: &ranking{}}
	}
	halves = []int32{i}
	last := [2]int32{none, none}
	for _, o := range units {
		for side, n := range f.part(o, depth, leaves, added) {
			if n != none {
				f.link(&leaves[side], last[side], n)
				last[side] = n
				if o == i && n != i {
					halves = append(halves, n)
				}
			}
		}
	}
	k.leaves = slices.Replace(k.leaves, index, index+1, leaves[0], leaves[1])
	return halves, true
}

// span returns a leaf's units, and the lowest and highest key of its endpoints.
func (f *forest) span(l leaf) (units []int32, low, high trie.Key) {
	for i := l.first; i != none; i = f.seats.unit(i).next {
		list := f.seats.unit(i).members
		first, last := f.endpoints.key(list[0]), f.endpoints.key(list[len(list)-1])
		if len(units) == 0 || first.Less(low) {
			low = first
		}
		if len(units) == 0 || high.Less(last) {
			high = last
		}
		units = append(units, i)
	}
	return units, low, high
}

// part cuts a unit in two at a bit, if it has endpoints on both sides. It returns the
// unit on each side, or none.
func (f *forest) part(i int32, bit int, halves [2]leaf, added func(part int32)) [2]int32 {
	members := f.seats.unit(i).members
	index := f.endpoints.firstWith(members, bit)
	sides := [2]int32{i, none}
	switch index {
	case 0:
		sides = [2]int32{none, i}
	case len(members):
	default:
		sides[1] = f.seats.divide(i, index, f.endpoints.sum(members[index:]))
		for _, id := range members[index:] {
			f.endpoints.setUnit(id, sides[1])
		}
		added(sides[1])
	}
	for side, n := range sides {
		if n != none {
			u, l := f.seats.unit(n), &halves[side]
			u.Node, u.hash, u.ranking, u.next = l.Node, l.hash, l.ranking, none
		}
	}
	return sides
}

// divisible reports whether a unit has two different endpoints.
func (f *forest) divisible(u *unit) bool {
	n := len(u.members)
	return n > 1 && f.endpoints.key(u.members[0]) != f.endpoints.key(u.members[n-1])
}

// seatLists numbers the earlier seats and substitutes of endpoints. Equal lists have one
// number.
type seatLists struct {
	lists   [][2][]int32
	numbers map[string]int32
	buffer  []byte
}

// add returns the number of a pair of lists, or none if both are empty.
func (l *seatLists) add(seats, substitutes []int32) int32 {
	if len(seats)+len(substitutes) == 0 {
		return none
	}
	l.buffer = l.buffer[:0]
	for _, list := range [2][]int32{seats, substitutes} {
		l.buffer = binary.LittleEndian.AppendUint32(l.buffer, uint32(len(list)))
		for _, slot := range list {
			l.buffer = binary.LittleEndian.AppendUint32(l.buffer, uint32(slot))
		}
	}
	if n, ok := l.numbers[string(l.buffer)]; ok {
		return n
	}
	if l.numbers == nil {
		l.numbers = map[string]int32{}
	}
	n := int32(len(l.lists))
	l.lists = append(l.lists, [2][]int32{slices.Clone(seats), slices.Clone(substitutes)})
	l.numbers[string(l.buffer)] = n
	return n
}
