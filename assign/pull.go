package assign

import (
	"cmp"
	"iter"
	"slices"
)

// recruits are the newcomers in a zone that can serve a class.
type recruits struct {
	zone int32
	pool []entry
}

// pull lets newcomers take over seats, up to their fair share: first from
// checkers that have far more than their share, then those that they would
// have had, had they been there from the start, then from any above its share.
func (p *Planner) pull(newcomers []int32) {
	byClass := make([][]recruits, len(p.classes))
	for c := range p.classes {
		byClass[c] = p.recruit(&p.classes[c], newcomers)
	}
	if len(p.above(func(b bounds) int32 { return b.bound })) > 0 {
		p.unburdenAll(newcomers, byClass, func(c *class, z, load, _ int32) int32 { return load - c.bound[z] - 1 })
	}
	for i, zones := range p.reachable(byClass) {
		for _, r := range zones {
			p.win(i, r.zone, r.pool)
		}
	}
	p.unburdenAll(newcomers, byClass, func(c *class, z, load, size int32) int32 { return load - size - c.share[z] })
}

// excess is how much too much a checker in a zone has, counted so that nothing
// is taken from it below zero.
type excess func(c *class, z, load, size int32) int32

func (p *Planner) unburdenAll(newcomers []int32, byClass [][]recruits, e excess) {
	if !slices.ContainsFunc(newcomers, p.hungry) {
		return
	}
	for i, zones := range p.reachable(byClass) {
		for _, r := range zones {
			if p.unburden(i, r.zone, r.pool, e) && !slices.ContainsFunc(newcomers, p.hungry) {
				return
			}
		}
	}
}

// recruit sorts newcomers into zones, in an order that does not depend on how
// these are numbered.
func (p *Planner) recruit(c *class, newcomers []int32) []recruits {
	var zones []recruits
	for _, s := range newcomers {
		if !c.has(s) {
			continue
		}
		at := slices.IndexFunc(zones, func(r recruits) bool { return r.zone == p.home[s] })
		if at < 0 {
			at = len(zones)
			zones = append(zones, recruits{zone: p.home[s]})
		}
		zones[at].pool = append(zones[at].pool, entry{p.hash[s], s})
	}
	slices.SortFunc(zones, func(a, b recruits) int { return cmp.Compare(p.zoneHash[a.zone], p.zoneHash[b.zone]) })
	return zones
}

// reachable are all units that a newcomer could check, in an order that
// depends on nothing but the endpoints.
func (p *Planner) reachable(byClass [][]recruits) iter.Seq2[int32, []recruits] {
	return func(yield func(int32, []recruits) bool) {
		for _, k := range p.kindOrder {
			r := byClass[p.kinds[k].class]
			if r == nil {
				continue
			}
			for _, i := range p.kinds[k].leaves {
				if !yield(i, r) {
					return
				}
			}
		}
	}
}

// hungry tells whether a newcomer has clearly less than its share.
func (p *Planner) hungry(s int32) bool {
	share := int32(0)
	for c := range p.classes {
		if p.classes[c].has(s) {
			share = max(share, p.classes[c].share[p.home[s]])
		}
	}
	return int64(p.load[s])*100 < int64(share)*92
}

// win gives a newcomer in a zone the seat of a neighbour that it outranks, or
// of another zone that the unit likes less than this one by now.
func (p *Planner) win(i, z int32, pool []entry) {
	u := &p.units[i]
	c := p.classOf(u)
	s := p.best(u, pool, c.share[z])
	if s == none {
		return
	}
	there, rival := false, int32(none)
	for _, o := range u.seats {
		if p.home[o] == z {
			there = true
			if p.live[o] && (rival == none || p.score(u, o) < p.score(u, rival)) {
				rival = o
			}
		}
	}
	switch {
	case rival != none && p.score(u, rival) < p.score(u, s):
	case there:
		return
	default:
		if rival = p.disliked(u, c, z); rival == none || p.best(u, c.pools[z], 1<<30) != s {
			return
		}
	}
	p.stand(i, rival)
	p.take(i, s)
}

// disliked is the seat in the zone that a unit likes least, if it likes z more.
func (p *Planner) disliked(u *unit, c *class, z int32) int32 {
	worst, seat := p.draw(u, c, z), int32(none)
	for _, o := range u.seats {
		if !p.live[o] || p.home[o] == p.kinds[u.kind].zone {
			continue
		}
		if r := p.draw(u, c, p.home[o]); p.likes(worst, r) {
			worst, seat = r, o
		}
	}
	return seat
}

// unburden gives a hungry newcomer in a zone the seat of the checker that has
// most too much.
func (p *Planner) unburden(i, z int32, pool []entry, e excess) bool {
	u := &p.units[i]
	c := p.classOf(u)
	s := p.best(u, pool, c.share[z])
	if s == none || !p.hungry(s) {
		return false
	}
	own, donor, most := p.kinds[u.kind].zone, int32(none), int32(-1)
	there := slices.ContainsFunc(u.seats, func(o int32) bool { return p.home[o] == z })
	for _, o := range u.seats {
		if h := p.home[o]; p.live[o] && (h == z || !there && h != own) {
			much := e(c, h, p.load[o], u.size())
			if much > most || much == most && donor != none && p.score(u, o) < p.score(u, donor) {
				donor, most = o, much
			}
		}
	}
	if donor == none {
		return false
	}
	p.stand(i, donor)
	p.take(i, s)
	return true
}
