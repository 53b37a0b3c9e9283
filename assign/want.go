package assign

// want lists a unit that could use a checker that comes.
func (p *Planner) want(i int32) {
	if u := &p.units[i]; !u.wanted && p.wanting(u) {
		u.wanted = true
		p.wanted = append(p.wanted, i)
	}
}

// review gives the units that were listed and still are in want.
func (p *Planner) review() []int32 {
	list := p.wanted
	p.wanted = p.wanted[:0]
	for _, i := range list {
		p.units[i].wanted = false
	}
	for _, i := range list {
		if p.units[i].kind != none {
			p.want(i)
		}
	}
	return p.wanted
}

// wanting tells whether a unit could use a checker that comes.
func (p *Planner) wanting(u *unit) bool {
	if len(u.seats) < int(p.kinds[u.kind].redundancy) || p.lacking(u) > 0 {
		return true
	}
	p.tally(u, false)
	if p.kinds[u.kind].plain() {
		return p.crowded(u)
	}
	worst := p.worst(u)
	standing := p.standing(u, worst)
	p.discount(worst, 1)
	return standing > p.ideal(u)
}

// crowded tells that of a plain unit, which is tallied: two seats in a zone, or
// none in its own.
func (p *Planner) crowded(u *unit) bool {
	known := false
	for _, s := range u.seats {
		if z := p.home[s]; z != none {
			known = true
			if p.used[z] > 1 {
				return true
			}
		}
	}
	return known && u.zone != none && p.used[u.zone] == 0
}
