package assign

import (
	"cmp"
	"math"
	"slices"
)

// shed moves work away from checkers that have clearly more than their share, to
// others that have room: what they do as substitutes, and seats only where without
// that they still have too much. Of those that are doubted, substitutes take them.
func (p *Planner) shed() {
	breach := func(c *class) []quota { return c.breach }
	var vacated []int32
	for _, s := range p.above(breach) {
		enough := p.allowance(s, func(c *class) []quota { return c.bound })
		for _, i := range p.ordered(s, func(u *unit) bool { return contains(u.extra, s) }) {
			if p.load[s] <= enough {
				break
			}
			p.shift(i, s)
		}
		if p.own(s) <= p.allowance(s, breach) {
			continue
		}
		for _, i := range p.sheddable(s) {
			switch {
			case p.own(s) <= enough:
			case p.live[s]:
				p.shift(i, s)
			case len(p.units[i].extra) > 0:
				p.stand(i, s)
				vacated = append(vacated, i)
			}
		}
	}
	p.fill(vacated)
}

// own is what a checker does, substitutes' work aside.
func (p *Planner) own(s int32) int32 { return p.load[s] - p.spare[s] }

// quotas are one of a class's, by zone.
type quotas func(c *class) []quota

// above are the checkers at work with more than a quota.
func (p *Planner) above(of quotas) []int32 {
	least := quota(math.MaxInt64) // with no more than that nobody is above any
	for k := range p.classes {
		for z, n := range p.classes[k].seats {
			if n > 0 {
				least = min(least, of(&p.classes[k])[z])
			}
		}
	}
	var full []int32
	for s, live := range p.live {
		if (live || p.doubt[s]) && quota(p.load[s])*fullWeight<<quotaBits > least*quota(p.can[s].weight) &&
			p.load[s] > p.allowance(int32(s), of) {
			full = append(full, int32(s))
		}
	}
	slices.SortFunc(full, func(a, b int32) int { return cmp.Compare(p.hash[a], p.hash[b]) })
	return full
}

// allowance is what a checker may have by the class that allows it most.
func (p *Planner) allowance(s int32, of quotas) int32 {
	most := quota(0)
	for k := range p.classes {
		if c := &p.classes[k]; c.has(s) {
			most = max(most, of(c)[p.home[s]])
		}
	}
	return p.of(most, s)
}

// sheddable are a checker's units, those first that others can take most
// easily and that rank it lowest.
func (p *Planner) sheddable(s int32) []int32 {
	return p.ordered(s, func(u *unit) bool { return contains(u.seats, s) })
}

// ordered are some of a checker's units, in that order.
func (p *Planner) ordered(s int32, which func(*unit) bool) []int32 {
	var list []int32
	for _, i := range p.slots[s].units {
		if which(&p.units[i]) {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int32) int {
		u, v := &p.units[a], &p.units[b]
		return cmp.Or(
			-cmp.Compare(p.choice(u), p.choice(v)),
			cmp.Compare(p.score(u, s), p.score(v, s)),
			p.inOrder(a, b))
	})
	return list
}

// shift moves one seat, or the work of a substitute, to someone with room in a
// place that is as good, and tells whether there is one.
func (p *Planner) shift(i, s int32) bool {
	u := &p.units[i]
	helps := contains(u.extra, s)
	if p.tally(u, helps) {
		return false
	}
	standing := p.standing(u, s)
	p.discount(s, 1)
	p.graded(u)
	if helps {
		standing = max(standing, 1) // as pickSubstitute has it
	}
	to := p.pickRoom(u, 0, standing)
	if to == none {
		return false
	}
	if helps {
		p.dismiss(i, s)
		p.help(i, to)
		return true
	}
	p.stand(i, s)
	p.take(i, to)
	return true
}
