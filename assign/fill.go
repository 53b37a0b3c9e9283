package assign

import (
	"cmp"
	"math/bits"
	"slices"
)

// fill puts the listed units right, those with the scarcest checkers first, of
// these the largest first, and seats in their own zones before all others. Where
// checkers have ceilings, each gets a first checker before any gets a second.
func (p *Planner) fill(units []int32) {
	p.current = none
	order := p.sorted(units)
	for len(order) > 0 {
		n := 1
		for n < len(order) && order[n].class == order[0].class {
			n++
		}
		for _, o := range order[:n] {
			u := &p.units[o.unit]
			if u.zone == none || len(u.seats) >= int(p.kinds[u.kind].redundancy) || len(u.extra) > 0 {
				continue
			}
			p.tally(u, false)
			if s := p.pick(u, 1); s != none {
				p.take(o.unit, s)
			}
		}
		if p.ceilings > 0 {
			p.deal(order[:n])
		}
		for _, o := range order[:n] {
			p.repair(o.unit)
		}
		for len(p.severed) > 0 {
			last := len(p.severed) - 1
			i := p.severed[last]
			p.severed = p.severed[:last]
			p.repair(i)
		}
		order = order[n:]
	}
}

// deal gives one seat to each in turn.
func (p *Planner) deal(order []turn) {
	for n, more := 1, true; more; n++ {
		more = false
		for _, o := range order {
			u := &p.units[o.unit]
			if int(p.kinds[u.kind].redundancy) < n {
				continue
			}
			more = true
			if len(u.seats) < n {
				p.add(o.unit)
			}
		}
	}
}

// turn is a unit's place in the order of filling.
type turn struct {
	class int32 // rank of its class
	size  int32 // size class, largest first
	hash  uint64
	unit  int32
}

func (p *Planner) sorted(units []int32) []turn {
	place := p.places()
	order := make([]turn, len(units))
	for n, i := range units {
		u := &p.units[i]
		order[n] = turn{place[p.kinds[u.kind].class], -int32(bits.Len(uint(len(u.members)))), u.hash, i}
	}
	slices.SortFunc(order, func(a, b turn) int {
		switch {
		case a.class != b.class:
			return int(a.class - b.class)
		case a.size != b.size:
			return int(a.size - b.size)
		case a.hash != b.hash:
			return cmp.Compare(a.hash, b.hash)
		}
		return p.inOrder(a.unit, b.unit)
	})
	return order
}

// places ranks the classes, scarcest first.
func (p *Planner) places() []int32 {
	classes := make([]int32, len(p.classes))
	for c := range classes {
		classes[c] = int32(c)
	}
	slices.SortFunc(classes, p.scarcer)
	place := make([]int32, len(classes))
	for n, c := range classes {
		place[c] = int32(n)
	}
	return place
}

// scarcer compares classes by how few checkers are able to serve them.
func (p *Planner) scarcer(a, b int32) int {
	return cmp.Or(cmp.Compare(p.classes[a].total, p.classes[b].total), cmp.Compare(p.classes[a].hash, p.classes[b].hash))
}

// inOrder compares two units by what they are, not by their numbers.
func (p *Planner) inOrder(a, b int32) int {
	u, v := &p.units[a], &p.units[b]
	if u.kind != v.kind {
		if c := cmp.Compare(p.kinds[u.kind].hash, p.kinds[v.kind].hash); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(u.prefix.hi, v.prefix.hi), cmp.Compare(u.prefix.lo, v.prefix.lo),
		cmp.Compare(u.depth, v.depth), p.byZone(u.zone, v.zone))
}
