package assign

import (
	"cmp"
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
		at.leaves = slices.DeleteFunc(at.leaves, func(i int32) bool {
			if len(p.units[i].members) > 0 {
				return false
			}
			p.dissolve(i)
			return true
		})
		at.hollow = false
	}
	p.hollow = p.hollow[:0]
	if p.resize() {
		for k := range p.kinds {
			p.regroup(int32(k))
		}
	} else {
		for _, k := range p.pending {
			p.graft(k)
		}
	}
	p.pending = p.pending[:0]
}

// resize sets the most endpoints in a unit to about a twelfth of the mean load,
// a power of two and at most a ninth. It shrinks at once, and grows late, since
// units are only joined for speed's sake.
func (p *Planner) resize() bool {
	checks := 0
	for i := range p.kinds {
		checks += p.kinds[i].count * min(int(p.kinds[i].redundancy), p.seated)
	}
	twelfth := checks / max(p.seated, 1) / 12
	want := 1 << max(bits.Len(uint(min(twelfth*4/3, p.options.Unit)))-1, 0)
	late := want > p.unit && twelfth < 3*p.unit && p.assigned() > 0
	if want == p.unit || late {
		return false
	}
	p.unit = want
	return true
}

// regroup makes all units of a kind anew.
func (p *Planner) regroup(k int32) {
	at := &p.kinds[k]
	items := slices.Grow(at.pending, at.count-len(at.pending))
	for _, i := range at.leaves {
		items = p.gather(items, i)
		p.dissolve(i)
	}
	sortItems(items)
	at.leaves, at.pending = at.leaves[:0], nil
	if len(items) > 0 {
		p.cut(k, key{}, 0, items)
	}
}

// gather appends a unit's endpoints. Those without seats may get some from
// others in their next unit, and so are told of as if they were new.
func (p *Planner) gather(items []item, i int32) []item {
	u := &p.units[i]
	seed := p.seeds.intern(u.seats, u.extra)
	for _, id := range u.members {
		if seed == none {
			p.flags[id] |= isNew
		}
		items = append(items, item{key: p.endpoints[id].key, id: id, seed: seed})
	}
	return items
}

// graft brings a kind's waiting endpoints into the trie as it is.
func (p *Planner) graft(k int32) {
	at := &p.kinds[k]
	old, pending := at.leaves, at.pending
	at.leaves, at.pending = make([]int32, 0, len(old)+1), nil
	sortItems(pending)
	i := 0
	for len(pending) > 0 {
		first := pending[0].key
		for i < len(old) && p.before(&p.units[old[i]], first) {
			at.leaves = append(at.leaves, old[i])
			i++
		}
		prefix, depth, leaf := p.locate(old, i, first)
		n := 1
		for n < len(pending) && pending[n].prefix(depth) == prefix {
			n++
		}
		items := pending[:n:n]
		if leaf {
			items = p.gather(slices.Clone(items), old[i])
			sortItems(items)
			p.dissolve(old[i])
			i++
		}
		p.cut(k, prefix, depth, items)
		pending = pending[n:]
	}
	at.leaves = append(at.leaves, old[i:]...)
}

// before tells whether all of a unit's keys come before one.
func (p *Planner) before(u *unit, k key) bool {
	return u.prefix.less(k) && k.prefix(int(u.depth)) != u.prefix
}

// locate finds where a key belongs: in leaf i, or else in an empty part of the
// trie between leaves i-1 and i.
func (p *Planner) locate(leaves []int32, i int, k key) (prefix key, depth int, leaf bool) {
	if i < len(leaves) {
		u := &p.units[leaves[i]]
		if k.prefix(int(u.depth)) == u.prefix {
			return u.prefix, int(u.depth), true
		}
		depth = k.common(u.prefix) + 1
	}
	if i > 0 {
		depth = max(depth, k.common(p.units[leaves[i-1]].prefix)+1)
	}
	return k.prefix(depth), depth, false
}

// cut makes units of sorted endpoints below a prefix: as few as hold no more
// than they should, and endpoints with different seats apart.
func (p *Planner) cut(k int32, prefix key, depth int, items []item) {
	for {
		if depth == 128 || len(items) <= p.unit && uniform(items) {
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

// uniform tells whether those that bring seats bring the same.
func uniform(items []item) bool {
	seed := int32(none)
	for i := range items {
		if s := items[i].seed; s != none && s != seed {
			if seed != none {
				return false
			}
			seed = s
		}
	}
	return true
}

// emit makes a unit.
func (p *Planner) emit(k int32, prefix key, depth int, items []item) {
	var i int32
	if n := len(p.freeUnits); n > 0 {
		i, p.freeUnits = p.freeUnits[n-1], p.freeUnits[:n-1]
	} else {
		i = int32(len(p.units))
		p.units = append(p.units, unit{})
	}
	at := &p.kinds[k]
	at.leaves = append(at.leaves, i)
	u := &p.units[i]
	*u = unit{prefix: prefix, hash: mix(mix(at.hash, prefix.hi), prefix.lo), kind: k, depth: uint8(depth), born: true}
	u.members = make([]health.EndpointID, len(items))
	seed, news := int32(none), 0
	for n := range items {
		id := items[n].id
		u.members[n] = id
		p.endpoints[id].unit = i
		if p.flags[id]&isNew != 0 {
			news++
		}
		u.born = u.born && p.flags[id]&isNew != 0
		if p.flags[id]&(isNew|isMoved) != 0 {
			p.visit(i)
		}
		if seed == none {
			seed = items[n].seed
		}
	}
	if seed != none {
		list := p.seeds.lists[seed]
		u.seats, u.extra = slices.Clone(list[0]), slices.Clone(list[1])
		p.settle(i)
	}
	if u.born {
		u.touched = p.step
		p.dirty = append(p.dirty, i)
	} else if news > 0 {
		for _, id := range u.members {
			if p.flags[id]&isNew != 0 {
				p.added = append(p.added, id)
			}
		}
	}
}

// sortItems sorts by key; a counting sort first, since hashes spread evenly.
func sortItems(items []item) {
	const digits = 12
	if len(items) < 1<<digits {
		slices.SortFunc(items, byKey)
		return
	}
	var starts [1<<digits + 1]int
	for i := range items {
		starts[items[i].hi>>(64-digits)+1]++
	}
	for i := range 1 << digits {
		starts[i+1] += starts[i]
	}
	sorted, next := make([]item, len(items)), starts
	for i := range items {
		d := items[i].hi >> (64 - digits)
		sorted[next[d]] = items[i]
		next[d]++
	}
	copy(items, sorted)
	for i := range 1 << digits {
		slices.SortFunc(items[starts[i]:starts[i+1]], byKey)
	}
}

// byKey leaves nothing to the order in which endpoints of equal hashes came.
func byKey(a, b item) int {
	switch {
	case a.less(b.key):
		return -1
	case b.less(a.key):
		return 1
	}
	return cmp.Compare(a.id, b.id)
}
