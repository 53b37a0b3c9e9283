package assign

import (
	"cmp"
	"slices"
)

// squeeze finds room for a unit with too few seats where checkers are at their
// ceilings: what could go elsewhere is moved away for it, and if no one has room
// for all of its endpoints, they are parted. It tells whether they were.
func (p *Planner) squeeze(i int32) bool {
	for len(p.units[i].seats) < int(p.kinds[p.units[i].kind].redundancy) {
		if p.add(i) || p.makeRoom(i) {
			continue
		}
		if !p.gaps(i) {
			return false
		}
		for _, half := range p.halve(i) {
			p.repair(half)
		}
		return true
	}
	return false
}

// gaps tells whether someone has room for some of a unit's endpoints.
func (p *Planner) gaps(i int32) bool {
	u := &p.units[i]
	if !p.divisible(u) {
		return false
	}
	c, rate := p.classOf(u), p.kinds[u.kind].rate
	p.tally(u, false)
	for z := range c.pools {
		if c.gaps[z] < rate || p.tier(u, int32(z)) == never {
			continue
		}
		for _, s := range c.pools[z] {
			if p.fits(s, rate) && !u.has(s) {
				return true
			}
		}
		p.narrow(c, int32(z))
	}
	return false
}

// divisible tells whether a unit has two different endpoints.
func (p *Planner) divisible(u *unit) bool {
	n := len(u.members)
	return n > 1 && p.endpoints[u.members[0]].Key != p.endpoints[u.members[n-1]].Key
}

// eligible are the live checkers that may have a unit and do not, best placed
// first, of those that are to be considered.
func (p *Planner) eligible(u *unit, consider func(s int32) bool) []int32 {
	p.tally(u, false)
	c := p.classOf(u)
	var list []int32
	for z := range c.pools {
		if p.tier(u, int32(z)) == never {
			continue
		}
		p.looks += len(c.pools[z])
		for _, s := range c.pools[z] {
			if consider(s) && !u.has(s) {
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.tier(u, p.home[a]), p.tier(u, p.home[b])), -p.compare(u, a, b))
	})
	return list
}

// makeRoom gives a unit a seat at a checker that others leave for it: those it
// is a substitute for without need, then those that more checkers are able to
// serve, if they can go elsewhere. If the unit has no checker at all, those that
// have others go in any case.
func (p *Planner) makeRoom(i int32) bool {
	u := &p.units[i]
	if p.looks > p.options.Looks && !p.cold && len(u.seats) > 0 {
		return false
	}
	cost, choice := p.cost(u), p.choice(u)
	list := p.eligible(u, func(s int32) bool {
		at := &p.slots[s]
		return cost <= p.can[s].Ceiling && at.stuck != p.step && (len(u.seats) == 0 || !at.jammed.holds(p.step, choice, cost))
	})
	for _, s := range list {
		if p.spare[s] > 0 && p.excuse(s, cost) {
			p.take(i, s)
			return true
		}
	}
	for _, s := range list {
		if p.slots[s].stuck == p.step {
			continue
		}
		if p.displace(i, s, cost) || len(u.seats) == 0 && p.deprive(s, cost) {
			p.take(i, s)
			return true
		}
	}
	return false
}

// costly are those of a checker's units that count for its ceiling.
func (p *Planner) costly(s int32) []int32 {
	return p.ordered(s, func(u *unit) bool { return contains(u.seats, s) && p.kinds[u.kind].rate > 0 })
}

// enforce has checkers that are above their ceilings give up seats. Their units
// are listed to be looked at.
func (p *Planner) enforce() {
	if p.ceilings == 0 {
		return
	}
	var above []int32
	for s := range p.slots {
		if p.over(int32(s)) && p.slots[s].known {
			above = append(above, int32(s))
		}
	}
	slices.SortFunc(above, func(a, b int32) int { return cmp.Compare(p.hash[a], p.hash[b]) })
	for _, s := range above {
		for _, i := range p.costly(s) {
			if !p.over(s) {
				break
			}
			if !p.shift(i, s) {
				p.stand(i, s)
			}
			p.visit(i)
		}
		for _, i := range p.ordered(s, func(u *unit) bool { return contains(u.extra, s) }) {
			if p.over(s) {
				p.dismiss(i, s)
				p.visit(i)
			}
		}
	}
}
