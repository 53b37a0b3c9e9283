package assign

// reconsider takes the plan made from scratch instead of the one at hand after
// much joined at once, if that moves no more. It so undoes what a lost zone
// had moved when the zone is back.
func (p *Planner) reconsider(newcomers int) {
	if newcomers < 2 || newcomers*20 < p.seated || !p.quiet() {
		return
	}
	seats := make([][]int32, len(p.units))
	for i := range p.units {
		if u := &p.units[i]; u.kind != none {
			p.touch(int32(i))
			seats[i] = u.seats
		}
	}
	moved := p.moved()
	p.refill(nil)
	if p.moved()*100 > moved*105 {
		p.refill(seats)
	}
}

// quiet tells whether all checkers are live and all endpoints have a seat, so
// that the plan can be made from scratch.
func (p *Planner) quiet() bool {
	for s := range p.slots {
		if p.slots[s].seated && (!p.live[s] || p.spare[s] > 0) {
			return false
		}
	}
	return true
}

// refill gives all units the given seats, or makes the plan from scratch.
func (p *Planner) refill(seats [][]int32) {
	for s := range p.slots {
		p.load[s] = 0
		p.slots[s].units = p.slots[s].units[:0]
	}
	var units []int32
	for _, k := range p.kindOrder {
		units = append(units, p.kinds[k].leaves...)
	}
	for _, i := range units {
		u := &p.units[i]
		if u.seats = nil; seats != nil {
			u.seats = seats[i]
			p.settle(i)
		}
	}
	if seats == nil {
		p.fill(units)
	}
}

// moved counts the checks that this Apply has given to a checker so far.
func (p *Planner) moved() int {
	sum := 0
	for _, i := range p.dirty {
		u := &p.units[i]
		for _, s := range u.seats {
			if !contains(u.before, s) {
				sum += len(u.members)
			}
		}
	}
	return sum
}
