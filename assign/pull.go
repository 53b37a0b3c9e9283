package assign

import (
	"slices"

	"hdsd/assign/internal/quota"
)

// pull lets newcomers take over seats, up to their fair share: first from
// checkers that have far more than their share, then those that they would
// have had, had they been there from the start, then from any above its share.
func (p *Planner) pull(newcomers []int32) {
	for _, donor := range p.above(quota.Bound) {
		p.hand(donor, newcomers, quota.Bound, true)
	}
	var left []int32
	for _, s := range newcomers {
		best := p.candidates(s)
		for _, l := range best {
			for i := l.first; i != none; i = p.units[i].next {
				p.win(i, s)
			}
		}
		for _, l := range best {
			for i := l.first; i != none && p.hungry(s); i = p.units[i].next {
				p.unburden(i, s)
			}
		}
		if p.hungry(s) {
			left = append(left, s)
		}
	}
	if len(left) > 0 {
		for _, donor := range p.above(quota.Share) {
			p.hand(donor, left, quota.Share, false)
		}
	}
}

// hand gives what a donor has above a quota to hungry newcomers; all of it, or
// no more than that.
func (p *Planner) hand(donor int32, newcomers []int32, of quota.Level, all bool) {
	if !p.live[donor] {
		return // substitutes take what it sheds
	}
	newcomers = slices.DeleteFunc(slices.Clone(newcomers), func(s int32) bool { return !p.hungry(s) })
	enough := p.quotas.Of(of, donor)
	const few = 4 // of whom it costs little to ask who could have what
	for _, i := range p.ordered(donor, func(u *unit) bool {
		may := func(s int32) bool { return p.mayReplace(u, donor, s) }
		return contains(u.seats, donor) && (len(newcomers) > few || slices.ContainsFunc(newcomers, may))
	}) {
		u := &p.units[i]
		if p.own(donor) <= enough || len(newcomers) == 0 {
			return
		}
		if !all && p.own(donor)-u.size() < enough {
			continue
		}
		to := int32(none)
		for _, s := range newcomers {
			if (to == none || p.outranks(u, s, to)) && p.mayReplace(u, donor, s) {
				to = s
			}
		}
		if to != none {
			p.stand(i, donor)
			p.take(i, to)
			if !p.hungry(to) {
				newcomers = slices.DeleteFunc(newcomers, func(s int32) bool { return s == to })
			}
		}
	}
}

// hungry tells whether a newcomer has clearly less than its share, and could do
// more.
func (p *Planner) hungry(s int32) bool {
	share := p.quotas.Of(quota.Share, s)
	return int64(p.load[s])*100 < int64(share)*92 && p.rate[s] < p.can[s].Ceiling
}

// mayReplace tells whether a newcomer is able and has room for a unit in the
// place of another, and is as well placed.
func (p *Planner) mayReplace(u *unit, o, s int32) bool {
	return p.roomy(u, s, quota.Share) && p.suits(u, o, s)
}

// suits tells whether a checker is able to have a unit in the place of another,
// and as well placed.
func (p *Planner) suits(u *unit, o, s int32) bool {
	z := p.home[s]
	if !p.classOf(u).has(s) || u.has(s) {
		return false
	}
	if p.home[o] == z {
		return true
	}
	p.tally(u, false)
	standing := p.standing(u, o)
	p.discount(o, 1)
	return p.tier(u, z) <= standing
}

// win gives a newcomer the seat of a neighbour that it outranks, or of another
// zone that the unit likes less than this one by now.
func (p *Planner) win(i, s int32) {
	u := &p.units[i]
	c, z := p.classOf(u), p.home[s]
	if u.has(s) || !p.roomy(u, s, quota.Share) {
		return
	}
	there, rival := false, int32(none)
	for _, o := range u.seats {
		if p.home[o] == z {
			there = true
			if p.live[o] && (rival == none || p.outranks(u, rival, o)) {
				rival = o
			}
		}
	}
	switch {
	case rival != none && p.outranks(u, s, rival):
	case there:
		return
	default:
		if rival = p.disliked(u, c, s); rival == none || p.best(u, c, p.rankOf(u, z), quota.Any) != s {
			return
		}
	}
	p.stand(i, rival)
	p.take(i, s)
}

// disliked is the seat in the zone that a unit likes least, if it likes that of
// a newcomer more.
func (p *Planner) disliked(u *unit, c *class, s int32) int32 {
	worst, seat := p.draw(u, c, p.home[s]), int32(none)
	for _, o := range u.seats {
		if !p.live[o] {
			continue
		}
		r := p.draw(u, c, p.home[o])
		same := seat != none && p.home[seat] == p.home[o] && p.outranks(u, seat, o)
		if (same || p.likes(&worst, &r)) && p.mayReplace(u, o, s) {
			worst, seat = r, o
		}
	}
	return seat
}

// unburden gives a hungry newcomer the seat of the checker that has most above
// its share.
func (p *Planner) unburden(i, s int32) {
	u := &p.units[i]
	donor, most := int32(none), int32(-1)
	for _, o := range u.seats {
		if !p.live[o] {
			continue
		}
		much := p.load[o] - u.size() - p.quotas.Of(quota.Share, o)
		better := much > most || much == most && donor != none && p.outranks(u, donor, o)
		if better && p.mayReplace(u, o, s) {
			donor, most = o, much
		}
	}
	if donor != none {
		p.stand(i, donor)
		p.take(i, s)
	}
}

// rankOf is the place of a zone with a live checker in a unit's order.
func (p *Planner) rankOf(u *unit, z int32) *rank {
	zones := p.rank(u)
	return &zones[slices.IndexFunc(zones, func(r rank) bool { return r.zone == z })]
}
