package assign

import (
	"cmp"
	"math/bits"
	"slices"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/rendezvous"
)

// puller lets newcomers take seats from other checkers.
type puller struct {
	fleet    *fleet
	room     *room
	classes  *classes
	kinds    *kinds
	forest   *forest
	seats    *seats
	needs    *needs
	rankings *rankings
	mover    *mover
	balancer *balancer
}

// pull lets newcomers take seats up to their fair share. They first take from
// checkers far above their share. Then they take the seats that they would have had,
// had they been there from the start. Last, they take from any checker above its
// share.
func (p *puller) pull(newcomers []int32) {
	for _, donor := range p.balancer.above(quota.Bound) {
		p.handOver(donor, newcomers, quota.Bound, true)
	}
	var unmet []int32
	for _, s := range newcomers {
		best := p.candidates(s)
		for _, l := range best {
			for i := l.first; i != none; i = p.seats.unit(i).next {
				p.win(i, s)
			}
		}
		for _, l := range best {
			for i := l.first; i != none && p.hungry(s); i = p.seats.unit(i).next {
				p.unburden(i, s)
			}
		}
		if p.hungry(s) {
			unmet = append(unmet, s)
		}
	}
	if len(unmet) > 0 {
		for _, donor := range p.balancer.above(quota.Share) {
			p.handOver(donor, unmet, quota.Share, false)
		}
	}
}

// handOver gives a donor's units above a quota to hungry newcomers. If all is true,
// the last unit may take the donor below the quota.
func (p *puller) handOver(donor int32, newcomers []int32, q quota.Level, all bool) {
	if !p.fleet.live(donor) {
		return // substitutes take what it sheds
	}
	newcomers = slices.DeleteFunc(slices.Clone(newcomers), func(s int32) bool { return !p.hungry(s) })
	enough := p.room.quota(q, donor)
	const cheap = 4 // it is cheap to ask for each unit whether so many newcomers may have it
	for _, i := range p.mover.sheddable(donor, func(u *unit) bool {
		accepts := func(s int32) bool { return p.needs.replaces(u, donor, s) }
		return u.seated(donor) && (len(newcomers) > cheap || slices.ContainsFunc(newcomers, accepts))
	}) {
		u := p.seats.unit(i)
		if p.room.seated(donor) <= enough || len(newcomers) == 0 {
			return
		}
		if !all && p.room.seated(donor)-u.size() < enough {
			continue
		}
		taker := int32(none)
		for _, s := range newcomers {
			if (taker == none || p.rankings.outranks(u, s, taker)) && p.needs.replaces(u, donor, s) {
				taker = s
			}
		}
		if taker != none {
			p.mover.swap(i, donor, taker)
			if !p.hungry(taker) {
				newcomers = slices.DeleteFunc(newcomers, func(s int32) bool { return s == taker })
			}
		}
	}
}

// hungry reports whether a newcomer is clearly below its share, and below its
// ceiling.
func (p *puller) hungry(s int32) bool {
	share := p.room.quota(quota.Share, s)
	return int64(p.room.load(s))*100 < int64(share)*92 && p.room.rate(s) < p.room.ceiling(s)
}

// win gives a newcomer the seat of the lowest-ranked live checker in its zone, if it
// outranks that one. If the unit has no seat in that zone, the newcomer takes the
// unit's last choice. For that, it must rank highest in its zone among those with room.
func (p *puller) win(i, s int32) {
	u, z := p.seats.unit(i), p.fleet.zone(s)
	if u.has(s) || !p.room.takes(s, u, quota.Share) {
		return
	}
	seated, rival := false, int32(none)
	for _, o := range u.seats {
		if p.fleet.zone(o) == z {
			seated = true
			if p.fleet.live(o) && (rival == none || p.rankings.outranks(u, rival, o)) {
				rival = o
			}
		}
	}
	switch {
	case rival != none && p.rankings.outranks(u, s, rival):
	case seated:
		return
	default:
		if rival = p.lastChoice(u, s); rival == none || p.rankings.best(u, p.rankings.ofZone(u, z), quota.Any) != s {
			return
		}
	}
	p.mover.swap(i, rival, s)
}

// lastChoice returns the live seat that a newcomer can take in the zone that the unit
// ranks lowest. It returns none if the unit ranks no such zone below the newcomer's.
func (p *puller) lastChoice(u *unit, s int32) int32 {
	worst, seat := p.rankings.draw(u, p.fleet.zone(s)), int32(none)
	for _, o := range u.seats {
		if !p.fleet.live(o) {
			continue
		}
		r := p.rankings.draw(u, p.fleet.zone(o))
		isOwn := seat != none && p.fleet.zone(seat) == p.fleet.zone(o) && p.rankings.outranks(u, seat, o)
		if (isOwn || p.rankings.prefers(&worst, &r)) && p.needs.replaces(u, o, s) {
			worst, seat = r, o
		}
	}
	return seat
}

// unburden gives a hungry newcomer the seat of the live checker that is furthest above
// its share. The checker must still have its share without the unit.
func (p *puller) unburden(i, s int32) {
	u := p.seats.unit(i)
	donor, excess := int32(none), int32(-1)
	for _, o := range u.seats {
		if !p.fleet.live(o) {
			continue
		}
		above := p.room.load(o) - u.size() - p.room.quota(quota.Share, o)
		better := above > excess || above == excess && donor != none && p.rankings.outranks(u, donor, o)
		if better && p.needs.replaces(u, o, s) {
			donor, excess = o, above
		}
	}
	if donor != none {
		p.mover.swap(i, donor, s)
	}
}

// candidate is a leaf that a newcomer ranks high for.
type candidate struct {
	place int32 // rank of its class, scarcest first
	score uint64
	first int32 // first unit of the leaf
}

// candidates returns the leaves for which a newcomer is probably among the first in
// its zone: scarcest class first, then the highest score. It gets about one in spread
// of them.
func (p *puller) candidates(s int32) []candidate {
	const spread = 12
	places := p.classes.byScarcity()
	var list []candidate
	for _, k := range p.kinds.inOrder() {
		c := k.class
		if !c.has(s) {
			continue
		}
		minimum := uint64(0)
		if mass, part := uint64(c.mass[p.fleet.zone(s)]), uint64(p.fleet.weight(s))*spread; part < mass {
			minimum, _ = bits.Div64(mass-part, 0, mass)
		}
		for i := range k.leaves {
			l := &k.leaves[i]
			if score := rendezvous.Score(l.hash, p.fleet.hash(s)); score >= minimum {
				list = append(list, candidate{places[k.id], score, l.first})
			}
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.place, b.place), -cmp.Compare(a.score, b.score), p.forest.inOrder(a.first, b.first))
	})
	return list
}
