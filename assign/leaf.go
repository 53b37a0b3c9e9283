package assign

import (
	"iter"
	"slices"

	"hdsd/assign/internal/trie"
	"hdsd/health"
)

// group is what is noted of the endpoints of one zone while a leaf is made.
type group struct {
	seed int32 // the seats that they bring, none if none
	size int
	unit int32
}

// groupOf is that of a zone, or of those without one.
func (p *Planner) groupOf(zone int32) *group { return &p.groups[zone+1] }

// zonesOfLeaf is how many times as many endpoints as a unit a leaf may have, if
// they are of several zones.
const zonesOfLeaf = 2

// small tells whether endpoints are few enough for a leaf: those of each zone for
// a unit.
func (p *Planner) small(items []trie.Item) bool {
	if len(items) <= p.unit || len(items) > zonesOfLeaf*p.unit {
		return len(items) <= p.unit
	}
	most := 0
	for i := range items {
		g := p.groupOf(items[i].Zone)
		g.size++
		most = max(most, g.size)
	}
	for i := range items {
		p.groupOf(items[i].Zone).size = 0
	}
	return most <= p.unit
}

// uniform tells whether those of one zone that bring seats bring the same.
func (p *Planner) uniform(items []trie.Item) bool {
	seeded := false
	for i := range items {
		if items[i].Seed != none {
			seeded = true
			break
		}
	}
	if !seeded {
		return true
	}
	for i := range p.groups {
		p.groups[i].seed = none
	}
	for i := range items {
		if s := items[i].Seed; s != none {
			switch g := p.groupOf(items[i].Zone); g.seed {
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

// emit makes a leaf.
func (p *Planner) emit(k int32, at trie.Node, items []trie.Item) {
	h := p.leafHash(k, at.Prefix)
	zones := p.scratch.zones[:0]
	for i := range items {
		g := p.groupOf(items[i].Zone)
		if g.size == 0 {
			g.seed = none
			zones = append(zones, items[i].Zone)
		}
		g.size++
		if g.seed == none {
			g.seed = items[i].Seed
		}
	}
	slices.SortFunc(zones, p.zones.Compare)
	p.scratch.zones = zones
	l := leaf{Node: at, hash: h, first: none, ranking: &ranking{}}
	last := int32(none)
	members := make([]health.EndpointID, len(items))
	for _, z := range zones {
		g := p.groupOf(z)
		g.unit = p.newUnit()
		p.link(&l, last, g.unit)
		last = g.unit
		p.units[g.unit] = unit{Node: at, hash: h, ranking: l.ranking, kind: k, zone: z, next: none, members: members[:0:g.size]}
		members = members[g.size:]
		g.size = 0
	}
	for i := range items {
		n := p.groupOf(items[i].Zone).unit
		u := &p.units[n]
		u.members = append(u.members, items[i].ID)
		u.sum += items[i].Lo
		p.endpoints[items[i].ID].unit = n
	}
	for _, z := range zones {
		p.start(p.groupOf(z))
	}
	p.kinds[k].leaves = append(p.kinds[k].leaves, l)
}

// link puts a unit behind the last one of a leaf.
func (p *Planner) link(l *leaf, last, i int32) {
	if last == none {
		l.first = i
	} else {
		p.units[last].next = i
	}
}

// newUnit gives the number of a free unit.
func (p *Planner) newUnit() int32 {
	if n := len(p.freeUnits); n > 0 {
		i := p.freeUnits[n-1]
		p.freeUnits = p.freeUnits[:n-1]
		return i
	}
	p.units = append(p.units, unit{})
	return int32(len(p.units) - 1)
}

// start gives a new unit the seats that its endpoints bring, and sees to it
// that it is looked at and told of.
func (p *Planner) start(g *group) {
	u := &p.units[g.unit]
	if g.seed != none {
		list := p.seeds.lists[g.seed]
		u.seats, u.extra = slices.Clone(list[0]), slices.Clone(list[1])
		p.settle(g.unit)
	}
	news, moved := 0, false
	for _, id := range u.members {
		if p.flags[id]&isNew != 0 {
			news++
		}
		moved = moved || p.flags[id]&isMoved != 0
	}
	if news > 0 || moved {
		p.visit(g.unit) // which lists it as wanting, if it still is then
	} else {
		p.want(g.unit)
	}
	u.mixed = moved || news > 0 && news < len(u.members)
	switch {
	case news == len(u.members):
		u.born, u.touched = true, p.step
		p.dirty = append(p.dirty, g.unit)
	case news > 0:
		for _, id := range u.members {
			if p.flags[id]&isNew != 0 {
				p.added = append(p.added, id)
			}
		}
	}
}

// unitsOf gives the units of a kind, in order.
func (p *Planner) unitsOf(k int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, l := range p.kinds[k].leaves {
			for i := l.first; i != none; i = p.units[i].next {
				if !yield(i) {
					return
				}
			}
		}
	}
}
