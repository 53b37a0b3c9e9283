package assign

// fill puts the listed units right, those with the scarcest checkers first, of
// these the largest first, and seats in their own zones before all others. Where
// checkers have ceilings, each gets a first checker before any gets a second.
func (p *Planner) fill(units []int32) {
	p.current = nil
	order := p.turns(units)
	for len(order) > 0 {
		n := 1
		for n < len(order) && order[n].class == order[0].class {
			n++
		}
		for _, o := range order[:n] {
			u := &p.units[o.unit]
			if !o.homeward || len(u.seats) >= int(p.kinds[u.kind].redundancy) {
				continue
			}
			p.tally(u, false)
			if s := p.pick(u, 1); s != none {
				p.take(o.unit, s)
			}
		}
		if p.ceilings > 0 {
			p.deal(order[:n])
		}
		for _, o := range order[:n] {
			p.repair(o.unit)
		}
		for len(p.severed) > 0 {
			last := len(p.severed) - 1
			i := p.severed[last]
			p.severed = p.severed[:last]
			p.repair(i)
		}
		order = order[n:]
	}
}

// deal gives one seat to each in turn.
func (p *Planner) deal(order []turn) {
	for n, more := 1, true; more; n++ {
		more = false
		for _, o := range order {
			u := &p.units[o.unit]
			if int(p.kinds[u.kind].redundancy) < n {
				continue
			}
			more = true
			if len(u.seats) < n {
				p.add(o.unit)
			}
		}
	}
}
