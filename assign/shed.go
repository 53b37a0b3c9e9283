package assign

import (
	"cmp"
	"slices"

	"hdsd/assign/internal/quota"
)

// shed moves work away from checkers that have clearly more than their share, to
// others that have room: what they do as substitutes, and seats only where without
// that they still have too much. Of those that are doubted, substitutes take them.
func (p *Planner) shed() {
	full := p.above(quota.Breach)
	if len(full) == 0 {
		return
	}
	var vacated []int32
	from := slices.Repeat([]int32{none}, len(p.slots))
	for _, s := range full {
		enough := p.quotas.Of(quota.Bound, s)
		for _, i := range p.ordered(s, func(u *unit) bool { return contains(u.extra, s) }) {
			if p.load[s] <= enough {
				break
			}
			p.shift(i, s)
		}
		if p.own(s) <= p.quotas.Of(quota.Breach, s) {
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
		for p.live[s] && p.own(s) > p.quotas.Of(quota.Breach, s) && p.relay(s, from) {
		}
	}
	vacated, p.severed = append(vacated, p.severed...), p.severed[:0]
	p.fill(vacated)
}

// own is what a checker does, substitutes' work aside.
func (p *Planner) own(s int32) int32 { return p.load[s] - p.spare[s] }

// above are the checkers at work with more than a quota.
func (p *Planner) above(of quota.Level) []int32 {
	above := p.quotas.Above(of)
	var full []int32
	for s, live := range p.live {
		if (live || p.doubt[s]) && above(int32(s), p.load[s]) {
			full = append(full, int32(s))
		}
	}
	slices.SortFunc(full, func(a, b int32) int { return cmp.Compare(p.hash[a], p.hash[b]) })
	return full
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
