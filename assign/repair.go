package assign

import (
	"cmp"
	"slices"
)

// visit lists a unit to be looked at.
func (p *Planner) visit(i int32) {
	if u := &p.units[i]; u.visited != p.step {
		u.visited = p.step
		p.visits = append(p.visits, i)
	}
}

// collect lists the units that this Change can have to do with.
func (p *Planner) collect() {
	freed := p.freed
	p.freed = p.freed && p.settling
	if p.held && !p.settling {
		for k := range p.kinds {
			for i := range p.unitsOf(int32(k)) {
				p.visit(i)
			}
		}
		return
	}
	for _, list := range [][]int32{p.left, p.suspended, p.came} {
		for _, s := range list {
			for _, i := range p.slots[s].units {
				p.visit(i)
			}
		}
	}
	for _, s := range p.left {
		p.slots[s].units = nil // all of them will lose it
	}
	if (len(p.came) == 0 && !freed) || p.settling {
		return
	}
	for _, i := range p.review() {
		u := &p.units[i]
		if c := p.classOf(u); freed || slices.ContainsFunc(p.came, c.has) {
			p.visit(i)
		}
	}
}

// prune takes away the seats of those that left or are no longer able or
// allowed.
func (p *Planner) prune(i int32) {
	u := &p.units[i]
	c, plain := p.classOf(u), p.kinds[u.kind].plain()
	banned := func(s int32) bool { return !plain && p.home[s] != none && p.tier(u, p.home[s]) == never }
	for _, v := range slices.Backward(u.seats) {
		if s := v; !p.slots[s].seated || p.slots[s].known && !c.has(s) || banned(s) {
			p.stand(i, s)
		}
	}
	for _, v := range slices.Backward(u.extra) {
		if s := v; !p.live[s] || !c.has(s) || banned(s) {
			p.dismiss(i, s)
		}
	}
}

// repair gives a unit the seats and substitutes that it should have.
func (p *Planner) repair(i int32) {
	u := &p.units[i]
	redundancy := int(p.kinds[u.kind].redundancy)
	for len(u.seats) > redundancy {
		p.tally(u, false)
		p.stand(i, p.worst(u))
	}
	for len(u.seats) < redundancy && p.add(i) {
	}
	if len(u.extra) == 0 && !p.wanting(u) {
		return
	}
	p.relieve(i)
	for range redundancy {
		if !p.improve(i) {
			break
		}
	}
	p.relieve(i)
	if p.ceilings > 0 && len(u.seats) < redundancy && p.squeeze(i) {
		return // its parts are right
	}
	if len(u.seats)+len(u.extra) == 0 {
		p.seatBlind(i)
	}
	p.substitute(i)
	p.want(i)
}

// seatBlind gives a unit that nobody else can have to a checker that is blind, or it
// would not be checked at all for as long as that one goes on.
func (p *Planner) seatBlind(i int32) {
	u := &p.units[i]
	c, cost, to, best := p.classOf(u), p.cost(u), int32(none), never
	p.tally(u, false)
	for n, blind := range p.blind {
		s := int32(n)
		if !blind || p.doubt[s] || !c.has(s) || !p.fits(s, cost) {
			continue
		}
		if tier := p.tier(u, p.home[s]); tier < best || tier == best && to != none && p.outranks(u, s, to) {
			to, best = s, tier
		}
	}
	if to != none {
		p.take(i, to)
	}
}

// substitute finds substitutes for lost checkers where too few are left, and for
// those that are doubted.
func (p *Planner) substitute(i int32) {
	for u := &p.units[i]; p.lacking(u) > 0; {
		p.tally(u, true)
		if s := p.pickSubstitute(u); s != none {
			p.help(i, s)
			continue
		}
		if p.ceilings > 0 && p.gaps(i) {
			for _, half := range p.halve(i) {
				p.substitute(half)
			}
		}
		return
	}
}

// lacking is how many substitutes a unit is short of; negative if it has more
// than it must have.
func (p *Planner) lacking(u *unit) int {
	doubted, blind := 0, 0
	for _, s := range u.seats {
		if p.doubt[s] {
			doubted++
		}
		if p.blind[s] {
			blind++
		}
	}
	return max(max(p.fewest(u), blind+1)-p.living(u), doubted-len(u.extra))
}

// living is how many live checkers a unit has, substitutes included.
func (p *Planner) living(u *unit) int {
	n := len(u.extra)
	for _, s := range u.seats {
		if p.live[s] {
			n++
		}
	}
	return n
}

// fewest is how many live checkers a unit must have whoever is lost.
func (p *Planner) fewest(u *unit) int { return min(2, int(p.kinds[u.kind].redundancy)) }

// relieve sends away the substitutes that are not needed any more.
func (p *Planner) relieve(i int32) {
	u := &p.units[i]
	for len(u.extra) > 0 && p.lacking(u) < 0 {
		p.dismiss(i, slices.MinFunc(u.extra, func(a, b int32) int { return p.compare(u, a, b) }))
	}
}

// add fills a seat: with a substitute, unless another is in a better zone.
func (p *Planner) add(i int32) bool {
	u := &p.units[i]
	p.tally(u, false)
	s := p.pick(u, never)
	if len(u.extra) > 0 {
		helper := slices.MaxFunc(u.extra, func(a, b int32) int {
			return cmp.Or(-cmp.Compare(p.tier(u, p.home[a]), p.tier(u, p.home[b])), p.compare(u, a, b))
		})
		if s == none || p.tier(u, p.home[helper]) <= p.tier(u, p.home[s]) {
			p.promote(i, helper)
			return true
		}
	}
	if s == none {
		return false
	}
	p.take(i, s)
	return true
}

// improve moves a seat to a better zone, if it can.
func (p *Planner) improve(i int32) bool {
	u := &p.units[i]
	if len(u.seats) == 0 || p.tally(u, false) {
		return false
	}
	worst := p.worst(u)
	standing := p.standing(u, worst)
	p.discount(worst, 1)
	if standing <= p.ideal(u) {
		return false
	}
	s := p.pick(u, standing)
	if s == none {
		return false
	}
	p.stand(i, worst)
	p.take(i, s)
	return true
}

// worst is the seat that a tallied unit can best do without: the one in the
// worst place; live ones before those that are kept for someone; of these the
// one that ranks lowest.
func (p *Planner) worst(u *unit) int32 {
	worst, place := u.seats[0], -1
	for _, s := range u.seats {
		at := p.standing(u, s) * 2
		if p.live[s] {
			at++
		}
		if at > place || at == place && p.outranks(u, worst, s) {
			worst, place = s, at
		}
	}
	return worst
}
