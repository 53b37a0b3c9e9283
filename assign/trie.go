package assign

import (
	"slices"
	"sort"

	"hdsd/health"
)

// item is an endpoint on its way into a unit.
type item struct {
	key
	id   health.EndpointID
	seed int32 // the seats that it brings, none if none
	kind int32
	zone int32
}

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
func (p *Planner) byKind() [][]item {
	parts := make([][]item, len(p.kinds))
	starts := make([]int, len(p.kinds)+1)
	for i := range p.pending {
		starts[p.pending[i].kind+1]++
	}
	for k := range p.kinds {
		if starts[k+1] == len(p.pending) { // of one kind all of them
			parts[k] = p.pending
			return parts
		}
		starts[k+1] += starts[k]
	}
	all, next := make([]item, len(p.pending)), slices.Clone(starts)
	for i := range p.pending {
		k := p.pending[i].kind
		all[next[k]] = p.pending[i]
		next[k]++
	}
	for k := range parts {
		parts[k] = all[starts[k]:starts[k+1]:starts[k+1]]
	}
	return parts
}

// graft brings a kind's waiting endpoints into the trie as it is.
func (p *Planner) graft(k int32, pending []item) {
	at := &p.kinds[k]
	old := at.leaves
	at.leaves = make([]leaf, 0, len(old)+1)
	pending = sortItems(pending)
	i := 0
	for len(pending) > 0 {
		first := pending[0].key
		for i < len(old) && old[i].before(first) {
			at.leaves = append(at.leaves, old[i])
			i++
		}
		prefix, depth, taken := locate(old, i, first)
		n := 1
		for n < len(pending) && pending[n].prefix(depth) == prefix {
			n++
		}
		items := pending[:n:n]
		if taken {
			items = sortItems(p.gather(slices.Clone(items), old[i]))
			i++
		}
		p.cut(k, prefix, depth, items)
		pending = pending[n:]
	}
	at.leaves = append(at.leaves, old[i:]...)
}

// before tells whether all of a leaf's keys come before one.
func (l *leaf) before(k key) bool {
	return l.prefix.less(k) && k.prefix(int(l.depth)) != l.prefix
}

// locate finds where a key belongs: in leaf i, or else in an empty part of the
// trie between leaves i-1 and i.
func locate(leaves []leaf, i int, k key) (prefix key, depth int, taken bool) {
	if i < len(leaves) {
		l := &leaves[i]
		if k.prefix(int(l.depth)) == l.prefix {
			return l.prefix, int(l.depth), true
		}
		depth = k.common(l.prefix) + 1
	}
	if i > 0 {
		depth = max(depth, k.common(leaves[i-1].prefix)+1)
	}
	return k.prefix(depth), depth, false
}

// cut makes leaves of sorted endpoints below a prefix: as few as hold no more
// than they should, and endpoints with different seats apart.
func (p *Planner) cut(k int32, prefix key, depth int, items []item) {
	for {
		if depth == 128 || p.small(items) && p.uniform(items) {
			p.emit(k, prefix, depth, items)
			return
		}
		at := sort.Search(len(items), func(i int) bool { return items[i].bit(depth) })
		right := prefix.with(depth)
		depth++
		switch at {
		case 0:
			prefix = right
		case len(items):
		default:
			p.cut(k, prefix, depth, items[:at])
			prefix, items = right, items[at:]
		}
	}
}
