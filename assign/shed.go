package assign

import (
	"cmp"
	"slices"
)

// shed moves seats away from live checkers that have clearly more than their
// share, to others that have room.
func (p *Planner) shed() {
	full := p.above(func(b bounds) int32 { return b.breach })
	for _, s := range full {
		enough := p.boundsOf(s).bound
		for _, i := range p.sheddable(s) {
			if p.load[s]-p.spare[s] <= enough {
				break
			}
			p.shift(i, s)
		}
	}
}

// above are the live checkers with more than a bound, substitutes' work aside.
func (p *Planner) above(bound func(bounds) int32) []int32 {
	var full []int32
	for s := range p.slots {
		if p.live[s] && p.load[s]-p.spare[s] > bound(p.boundsOf(int32(s))) {
			full = append(full, int32(s))
		}
	}
	slices.SortFunc(full, func(a, b int32) int { return cmp.Compare(p.hash[a], p.hash[b]) })
	return full
}

// bounds are a checker's, by the class that allows it most.
type bounds struct{ bound, breach int32 }

func (p *Planner) boundsOf(s int32) bounds {
	var b bounds
	for k := range p.classes {
		if c := &p.classes[k]; c.has(s) {
			z := p.home[s]
			b = bounds{max(b.bound, c.bound[z]), max(b.breach, c.breach[z])}
		}
	}
	return b
}

// sheddable are a checker's units, those first that others can take most
// easily and that rank it lowest.
func (p *Planner) sheddable(s int32) []int32 {
	var list []int32
	for _, i := range p.slots[s].units {
		if _, seat := slices.BinarySearch(p.units[i].seats, s); seat {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int32) int {
		u, v := &p.units[a], &p.units[b]
		return cmp.Or(
			-cmp.Compare(p.classOf(u).total, p.classOf(v).total),
			cmp.Compare(p.score(u, s), p.score(v, s)),
			p.inOrder(a, b))
	})
	return list
}

// shift moves one seat to someone with room, if that costs no zone.
func (p *Planner) shift(i, s int32) {
	u := &p.units[i]
	if p.tally(u, false) {
		return
	}
	z, own := p.home[s], p.kinds[u.kind].zone
	p.used[z]--
	to := p.pickRoom(i, func(other int32) bool {
		switch {
		case z == own && p.used[z] == 0:
			return other == z
		case p.used[z] == 0:
			return p.used[other] == 0
		}
		return true
	})
	if to != none {
		p.stand(i, s)
		p.take(i, to)
	}
}
