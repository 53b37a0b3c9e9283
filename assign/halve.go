package assign

import (
	"cmp"
	"slices"

	"hdsd/assign/internal/rendezvous"
	"hdsd/assign/internal/trie"
	"hdsd/health"
)

// halve cuts the leaf of a unit in two, and so each of its units. All keep
// what they had. It gives the unit's halves; one, if it has no two different
// endpoints.
func (p *Planner) halve(i int32) []int32 {
	u := &p.units[i]
	leaves := p.kinds[u.kind].leaves
	at, _ := slices.BinarySearchFunc(leaves, u.Prefix, func(l leaf, k trie.Key) int {
		return cmp.Or(cmp.Compare(l.Prefix.Hi, k.Hi), cmp.Compare(l.Prefix.Lo, k.Lo))
	})
	l := leaves[at]
	var members []int32
	var low, high trie.Key
	for o := l.first; o != none; o = p.units[o].next {
		list := p.units[o].members
		first, last := p.endpoints[list[0]].Key, p.endpoints[list[len(list)-1]].Key
		if len(members) == 0 || first.Less(low) {
			low = first
		}
		if len(members) == 0 || high.Less(last) {
			high = last
		}
		members = append(members, o)
	}
	depth := low.Common(high)
	if depth >= 128 {
		return []int32{i}
	}
	left, right := p.half(l, trie.NodeOf(low, depth+1)), p.half(l, trie.NodeOf(high, depth+1))
	halves := []int32{i}
	last := [2]int32{none, none}
	for _, o := range members {
		both := [2]*leaf{&left, &right}
		for side, n := range p.sever(o, depth, both) {
			if n != none {
				p.link(both[side], last[side], n)
				last[side] = n
				if o == i && n != i {
					halves = append(halves, n)
				}
			}
		}
	}
	p.kinds[u.kind].leaves = slices.Replace(leaves, at, at+1, left, right)
	p.current = nil
	return halves
}

func (p *Planner) half(l leaf, at trie.Node) leaf {
	return leaf{Node: at, hash: p.leafHash(p.units[l.first].kind, at.Prefix), first: none, ranking: &ranking{}}
}

// leafHash is what a leaf ranks zones and checkers by. Another redundancy, rate
// or placement does not change it, and so does not move what can stay.
func (p *Planner) leafHash(k int32, prefix trie.Key) uint64 {
	return rendezvous.Score(rendezvous.Score(p.classes[p.kinds[k].class].hash, prefix.Hi), prefix.Lo)
}

// sever parts a unit at a bit: the number of what is left of it, and right.
func (p *Planner) sever(i int32, bit int, halves [2]*leaf) [2]int32 {
	at, _ := slices.BinarySearchFunc(p.units[i].members, true, func(id health.EndpointID, _ bool) int {
		if p.endpoints[id].Bit(bit) {
			return 0
		}
		return -1
	})
	parts := [2]int32{i, none}
	switch at {
	case 0:
		parts = [2]int32{none, i}
	case len(p.units[i].members):
	default:
		parts[1] = p.newUnit()
		u, n := &p.units[i], &p.units[parts[1]]
		*n = *u
		n.members, n.seats, n.extra = slices.Clone(u.members[at:]), slices.Clone(u.seats), slices.Clone(u.extra)
		n.wanted = false
		if p.aside != nil {
			p.aside = append(p.aside, make([][]int32, len(p.units)-len(p.aside))...)
			p.aside[parts[1]] = slices.Clone(p.aside[i])
		}
		u.members = u.members[:at:at]
		n.sum = p.sum(n.members)
		u.sum -= n.sum
		for _, id := range n.members {
			p.endpoints[id].unit = parts[1]
		}
		for _, s := range n.all() {
			p.slots[s].units = append(p.slots[s].units, parts[1])
		}
		if n.touched == p.step {
			p.dirty = append(p.dirty, parts[1])
		}
		if n.visited == p.step {
			p.visits = append(p.visits, parts[1])
		}
		p.want(parts[1])
		p.severed = append(p.severed, parts[1])
	}
	for side, n := range parts {
		if n != none {
			u := &p.units[n]
			u.Node, u.hash, u.next = halves[side].Node, halves[side].hash, none
			u.ranking = halves[side].ranking
		}
	}
	return parts
}
