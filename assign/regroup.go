package assign

import (
	"math/bits"
	"slices"

	"hdsd/assign/internal/trie"
)

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
func (p *Planner) regroup(k int32, items []trie.Item) {
	at := &p.kinds[k]
	news := len(items)
	items = slices.Grow(items, at.count-news)
	var space []trie.Item
	for _, l := range at.leaves {
		from := len(items)
		items = p.gather(items, l)
		n := len(items) - from
		space = slices.Grow(space[:0], n)
		trie.SortInPlace(items[from:], space[:n])
	}
	at.leaves = at.leaves[:0]
	if news > 0 { // else leaf by leaf is in order
		items = trie.Sort(items)
	}
	p.reserve(len(items))
	if len(items) > 0 {
		p.cut(k, trie.Node{}, items)
	}
}

// gather appends a leaf's endpoints, and takes its units off the books. Those
// without seats may get some from others in their next unit, and so are told of
// as if they were new.
func (p *Planner) gather(items []trie.Item, l leaf) []trie.Item {
	for i := l.first; i != none; {
		u := &p.units[i]
		seed := p.seeds.intern(u.seats, u.extra)
		for _, id := range u.members {
			if seed == none {
				p.flags[id] |= isNew
			}
			items = append(items, trie.Item{Key: p.endpoints[id].Key, ID: id, Seed: seed, Kind: u.kind, Zone: u.zone})
		}
		next := u.next
		p.dissolve(i)
		i = next
	}
	return items
}

// reserve makes room for the units of so many endpoints.
func (p *Planner) reserve(endpoints int) {
	const zones = 8 // of more, only some have endpoints in a leaf
	units := min(endpoints, endpoints/p.unit*min(p.zones.Len(), zones))
	p.units = slices.Grow(p.units, max(units-len(p.freeUnits), 0))
}
