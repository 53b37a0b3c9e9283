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
	if u.size() < 2 {
		return false
	}
	first, last := u.members[0], u.members[len(u.members)-1]
	if p.endpoints[first].key == p.endpoints[last].key {
		return false
	}
	rate := p.kinds[u.kind].rate
	return slices.ContainsFunc(p.eligible(u), func(s int32) bool { return p.fits(s, rate) })
}

// eligible are the live checkers that may have a unit and do not, best placed
// first.
func (p *Planner) eligible(u *unit) []int32 {
	p.tally(u, false)
	c := p.classOf(u)
	var list []int32
	for z := range c.pools {
		if p.tier(u, int32(z)) == never {
			continue
		}
		for _, e := range c.pools[z] {
			if !u.has(e.slot) {
				list = append(list, e.slot)
			}
		}
	}
	slices.SortFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.tier(u, p.home[a]), p.tier(u, p.home[b])), -p.compare(u, a, b))
	})
	return list
}

// makeRoom gives a unit a seat at a checker that others leave for it: those
// that more checkers are able to serve go elsewhere if they can. If the unit has
// no checker at all, those that have others go in any case.
func (p *Planner) makeRoom(i int32) bool {
	u := &p.units[i]
	cost := p.cost(u)
	for _, s := range p.eligible(u) {
		if cost > p.can[s].ceiling || p.slots[s].stuck == p.step {
			continue
		}
		if p.displace(i, s, cost) || len(u.seats) == 0 && p.deprive(s, cost) {
			p.take(i, s)
			return true
		}
	}
	return false
}

// jam is a unit that a checker's others did not make room for, in a step. Those
// that ask for more, or as much for a class that more are able to serve, are not
// tried then: at the ceilings of a whole fleet that would take most of the time.
type jam struct {
	step  uint32
	total int // checkers that are able to serve the unit's class
	cost  int64
}

func (j *jam) holds(step uint32, total int, cost int64) bool {
	return j.step == step && total >= j.total && cost >= j.cost
}

// displace has a checker's other units go elsewhere until a cost fits.
func (p *Planner) displace(i, s int32, cost int64) bool {
	total, j := p.classOf(&p.units[i]).total, &p.slots[s].jammed
	if p.fits(s, cost) {
		return true
	}
	if j.holds(p.step, total, cost) {
		return false
	}
	if p.clear(s, total, cost) {
		return true
	}
	if j.step != p.step || total <= j.total && cost <= j.cost {
		*j = jam{p.step, total, cost}
	}
	return false
}

// clear has those units go elsewhere that more checkers are able to serve.
func (p *Planner) clear(s int32, total int, cost int64) bool {
	for _, o := range p.costly(s) {
		if p.fits(s, cost) {
			return true
		}
		if p.classOf(&p.units[o]).total > total {
			p.shift(o, s)
		}
	}
	return p.fits(s, cost)
}

// deprive takes a checker away from units that have others, until a cost fits.
func (p *Planner) deprive(s int32, cost int64) bool {
	for _, o := range p.costly(s) {
		if p.fits(s, cost) {
			return true
		}
		if u := &p.units[o]; len(u.seats) > 1 {
			p.stand(o, s)
			p.want(o)
		}
	}
	if p.fits(s, cost) {
		return true
	}
	p.slots[s].stuck = p.step // there is nothing to take
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
