package assign

import (
	"slices"

	"hdsd/assign/internal/trie"
)

// group puts endpoints that wait for it into units, and takes empty units out.
func (p *Planner) group() {
	for _, k := range p.hollow {
		at := &p.kinds[k]
		p.clean(at)
		at.hollow = false
	}
	p.hollow = p.hollow[:0]
	waiting := p.byKind()
	if p.resize() {
		for k := range p.kinds {
			p.regroup(int32(k), waiting[k])
		}
	} else {
		for k := range waiting {
			if len(waiting[k]) > 0 {
				p.graft(int32(k), waiting[k])
			}
		}
	}
	p.pending = nil
}

// clean takes the empty units of a kind out.
func (p *Planner) clean(at *kind) {
	for n := range at.leaves {
		l, last := &at.leaves[n], int32(none)
		for i := l.first; i != none; {
			next := p.units[i].next
			if len(p.units[i].members) == 0 {
				p.link(l, last, next)
				p.dissolve(i)
			} else {
				last = i
			}
			i = next
		}
	}
	at.leaves = slices.DeleteFunc(at.leaves, func(l leaf) bool { return l.first == none })
}

// byKind parts the endpoints that wait to be grouped.
func (p *Planner) byKind() [][]trie.Item {
	parts := make([][]trie.Item, len(p.kinds))
	starts := make([]int, len(p.kinds)+1)
	for i := range p.pending {
		starts[p.pending[i].Kind+1]++
	}
	for k := range p.kinds {
		if starts[k+1] == len(p.pending) { // of one kind all of them
			parts[k] = p.pending
			return parts
		}
		starts[k+1] += starts[k]
	}
	all, next := make([]trie.Item, len(p.pending)), slices.Clone(starts)
	for i := range p.pending {
		k := p.pending[i].Kind
		all[next[k]] = p.pending[i]
		next[k]++
	}
	for k := range parts {
		parts[k] = all[starts[k]:starts[k+1]:starts[k+1]]
	}
	return parts
}

// graft brings a kind's waiting endpoints into the trie as it is.
func (p *Planner) graft(k int32, pending []trie.Item) {
	kind := &p.kinds[k]
	old := kind.leaves
	kind.leaves = make([]leaf, 0, len(old)+1)
	pending = trie.Sort(pending)
	i := 0
	for len(pending) > 0 {
		first := pending[0].Key
		for i < len(old) && old[i].Before(first) {
			kind.leaves = append(kind.leaves, old[i])
			i++
		}
		at, taken := locate(old, i, first)
		n := 1
		for n < len(pending) && at.Contains(pending[n].Key) {
			n++
		}
		items := pending[:n:n]
		if taken {
			items = trie.Sort(p.gather(slices.Clone(items), old[i]))
			i++
		}
		p.cut(k, at, items)
		pending = pending[n:]
	}
	kind.leaves = append(kind.leaves, old[i:]...)
}

// locate finds where a key belongs: in leaf i, or else in an empty part of the
// trie between leaves i-1 and i.
func locate(leaves []leaf, i int, k trie.Key) (at trie.Node, taken bool) {
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

// cut makes leaves of sorted endpoints of a part of the trie: as few as hold no
// more than they should, and endpoints with different seats apart.
func (p *Planner) cut(k int32, at trie.Node, items []trie.Item) {
	trie.Cut(at, items,
		func(items []trie.Item) bool { return p.small(items) && p.uniform(items) },
		func(at trie.Node, items []trie.Item) { p.emit(k, at, items) })
}
