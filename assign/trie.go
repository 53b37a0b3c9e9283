package assign

import (
	"encoding/binary"
	"math/bits"
	"slices"

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

// seeds numbers the lists of seats that endpoints bring: equal lists have one
// number.
type seeds struct {
	lists  [][2][]int32
	number map[string]int32
	buffer []byte
}

func (s *seeds) intern(seats, extra []int32) int32 {
	if len(seats)+len(extra) == 0 {
		return none
	}
	s.buffer = s.buffer[:0]
	for _, list := range [2][]int32{seats, extra} {
		s.buffer = binary.LittleEndian.AppendUint32(s.buffer, uint32(len(list)))
		for _, slot := range list {
			s.buffer = binary.LittleEndian.AppendUint32(s.buffer, uint32(slot))
		}
	}
	if n, ok := s.number[string(s.buffer)]; ok {
		return n
	}
	if s.number == nil {
		s.number = map[string]int32{}
	}
	n := int32(len(s.lists))
	s.lists = append(s.lists, [2][]int32{slices.Clone(seats), slices.Clone(extra)})
	s.number[string(s.buffer)] = n
	return n
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

// resize sets the most endpoints in a leaf to about a twelfth of the mean load,
// a power of two and at most a ninth. It shrinks at once, and grows late, since
// leaves are only joined for speed's sake.
func (p *Planner) resize() bool {
	checks := 0
	for i := range p.kinds {
		checks += p.kinds[i].count * min(int(p.kinds[i].redundancy), p.seated)
	}
	twelfth := checks / max(p.seated, 1) / 12
	if p.seated == 0 {
		twelfth = p.options.Unit
	}
	want := 1 << max(bits.Len(uint(min(twelfth*4/3, p.options.Unit)))-1, 0)
	late := want > p.unit && twelfth < 3*p.unit && p.assigned() > 0
	if want == p.unit || late {
		return false
	}
	p.unit = want
	return true
}

// regroup makes all units of a kind anew.
func (p *Planner) regroup(k int32, items []item) {
	at := &p.kinds[k]
	items = slices.Grow(items, at.count-len(items))
	for _, l := range at.leaves {
		items = p.gather(items, l)
	}
	at.leaves = at.leaves[:0]
	if len(items) > 0 {
		p.cut(k, key{}, 0, p.sortItems(items))
	}
}

// gather appends a leaf's endpoints, and takes its units off the books. Those
// without seats may get some from others in their next unit, and so are told of
// as if they were new.
func (p *Planner) gather(items []item, l leaf) []item {
	for i := l.first; i != none; {
		u := &p.units[i]
		seed := p.seeds.intern(u.seats, u.extra)
		for _, id := range u.members {
			if seed == none {
				p.flags[id] |= isNew
			}
			items = append(items, item{key: p.endpoints[id].key, id: id, seed: seed, kind: u.kind, zone: u.zone})
		}
		next := u.next
		p.dissolve(i)
		i = next
	}
	return items
}

// graft brings a kind's waiting endpoints into the trie as it is.
func (p *Planner) graft(k int32, pending []item) {
	at := &p.kinds[k]
	old := at.leaves
	at.leaves = make([]leaf, 0, len(old)+1)
	pending = p.sortItems(pending)
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
			items = p.sortItems(p.gather(slices.Clone(items), old[i]))
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
		at, _ := slices.BinarySearchFunc(items, true, func(i item, _ bool) int {
			if i.bit(depth) {
				return 0
			}
			return -1
		})
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
