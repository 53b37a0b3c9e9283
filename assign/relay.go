package assign

import (
	"cmp"
	"slices"

	"hdsd/assign/internal/quota"
)

// relay relieves a checker that has too much where all who could take some of it
// are full: the first of them hands on something of its own, and so on to one
// that has room. Of such chains it takes a shortest one.
func (p *Planner) relay(s int32, from []int32) bool {
	chain := p.chain(s, from)
	if len(chain) == 0 {
		return false
	}
	for i := range from {
		from[i] = none
	}
	last := chain[0]
	room, leeway := p.quotas.Of(quota.Limit, last)-p.load[last], p.leeway(last)
	for n := 1; n < len(chain); n++ {
		giver, taker := chain[n], chain[n-1]
		i := p.parcel(giver, taker, room, leeway)
		if i == none {
			return false
		}
		u := &p.units[i]
		p.stand(i, giver)
		p.take(i, taker)
		p.severed = append(p.severed, i) // in its own zone, both may have a place for it by now
		room = max(p.quotas.Of(quota.Breach, giver)-p.load[giver], u.size())
		leeway = max(p.leeway(giver), p.cost(u))
	}
	return true
}

// chain finds the checkers along which work can go from one that has too much to
// one that has no more than its share, and room, the last first. From tells who can hand
// something to whom; those that lead nowhere are not tried again.
func (p *Planner) chain(s int32, from []int32) []int32 {
	seen := make([]bool, len(p.classes)*p.zones.Len())
	from[s] = s
	for queue := []int32{s}; len(queue) > 0 && (p.cold || p.looks <= p.options.Looks); queue = queue[1:] {
		var next []int32
		idle := int32(none)
		for _, i := range p.sheddable(queue[0]) {
			p.takers(i, queue[0], seen, func(t int32) {
				if from[t] != none {
					return
				}
				from[t] = queue[0]
				next = append(next, t)
				takes := p.load[t] <= p.quotas.Of(quota.Share, t) && p.load[t] < p.quotas.Of(quota.Limit, t) && p.fits(t, p.kinds[p.units[i].kind].rate)
				if takes && (idle == none || p.hash[t] < p.hash[idle]) {
					idle = t
				}
			})
		}
		if idle != none {
			return p.back(idle, from)
		}
		slices.SortFunc(next, func(a, b int32) int { return cmp.Compare(p.hash[a], p.hash[b]) })
		queue = append(queue, next...)
	}
	return nil
}

// back follows a chain to where it begins.
func (p *Planner) back(t int32, from []int32) []int32 {
	chain := []int32{t}
	for from[t] != t {
		t = from[t]
		chain = append(chain, t)
	}
	return chain
}

// takers gives those who could have a unit in the place of another checker, but
// for zones where all of its class were seen.
func (p *Planner) takers(i, s int32, seen []bool, yield func(t int32)) {
	u := &p.units[i]
	c, id := p.classOf(u), int(p.kinds[u.kind].class)
	p.tally(u, false)
	standing := p.standing(u, s)
	p.discount(s, 1)
	for z := range c.pools {
		at := id*p.zones.Len() + z
		if seen[at] || p.tier(u, int32(z)) > standing {
			continue
		}
		seen[at] = true
		p.looks += len(c.pools[z])
		for _, t := range c.pools[z] {
			switch {
			case !u.has(t):
				yield(t)
			case t != s:
				seen[at] = false
			}
		}
	}
}

// parcel is a unit that one checker can hand to another that has so much room; a
// part of one, if all are too large.
func (p *Planner) parcel(giver, taker, room int32, leeway int64) int32 {
	fits := func(u *unit) bool { return u.size() <= room && p.cost(u) <= leeway }
	least := int32(none)
	for _, i := range p.sheddable(giver) {
		u := &p.units[i]
		switch {
		case !p.suits(u, giver, taker):
		case fits(u):
			return i
		case least == none || u.size() < p.units[least].size():
			least = i
		}
	}
	for least != none && !fits(&p.units[least]) {
		if !p.divisible(&p.units[least]) {
			return none
		}
		halves := p.halve(least)
		least = slices.MinFunc(halves, func(a, b int32) int { return cmp.Compare(p.units[a].size(), p.units[b].size()) })
	}
	return least
}
