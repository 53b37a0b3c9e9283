package assign

// jam is a unit that a checker's others did not make room for, in a step. Those
// that ask for more, or as much where more may serve them, are not
// tried then: at the ceilings of a whole fleet that would take most of the time.
type jam struct {
	step   uint32
	choice int // checkers that may serve the unit
	cost   int64
}

func (j *jam) holds(step uint32, choice int, cost int64) bool {
	return j.step == step && choice >= j.choice && cost >= j.cost
}

// displace has a checker's other units go elsewhere until a cost fits.
func (p *Planner) displace(i, s int32, cost int64) bool {
	choice, j := p.choice(&p.units[i]), &p.slots[s].jammed
	if p.fits(s, cost) {
		return true
	}
	if j.holds(p.step, choice, cost) {
		return false
	}
	if p.clear(s, choice, cost) {
		return true
	}
	if j.step != p.step || choice <= j.choice && cost <= j.cost {
		*j = jam{p.step, choice, cost}
	}
	return false
}

// clear has those units go elsewhere that more checkers may serve.
func (p *Planner) clear(s int32, choice int, cost int64) bool {
	p.looks += len(p.slots[s].units)
	for _, o := range p.ordered(s, func(o *unit) bool {
		return p.kinds[o.kind].rate > 0 && p.choice(o) > choice && contains(o.seats, s) && p.promising(o, o.size())
	}) {
		if p.fits(s, cost) {
			return true
		}
		p.shift(o, s)
	}
	return p.fits(s, cost)
}

// excuse has a substitute leave units that have live checkers enough without it,
// until a cost fits.
func (p *Planner) excuse(s int32, cost int64) bool {
	for _, o := range p.ordered(s, func(o *unit) bool {
		return p.kinds[o.kind].rate > 0 && contains(o.extra, s) && p.living(o) > p.fewest(o)
	}) {
		if p.fits(s, cost) {
			return true
		}
		p.dismiss(o, s)
		p.want(o)
	}
	return p.fits(s, cost)
}

// choice is how many checkers are able to serve a unit, and are where they may.
func (p *Planner) choice(u *unit) int {
	k := &p.kinds[u.kind]
	c := &p.classes[k.class]
	switch {
	case u.zone == none || k.zones != OwnOnly && k.regions != OwnOnly:
		return c.total
	case k.zones == OwnOnly:
		return int(c.seats[u.zone])
	}
	n := 0
	for z, seats := range c.seats {
		if p.tier(u, int32(z)) != never {
			n += int(seats)
		}
	}
	return n
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
