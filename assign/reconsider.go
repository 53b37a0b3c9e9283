package assign

import (
	"slices"

	"hdsd/assign/internal/quota"
)

// reconsider takes the plan made from scratch instead of the one at hand after
// much joined at once, if that moves hardly more than what the newcomers are to
// have, and tells whether it did. It so undoes what a lost zone had moved when
// the zone is back.
func (p *Planner) reconsider(newcomers []int32) bool {
	if len(newcomers) < 2 || len(newcomers)*20 < p.seated || !p.quiet() {
		return false
	}
	fair := 0
	for _, s := range newcomers {
		fair += int(p.quotas.Of(quota.Share, s))
	}
	p.aside = make([][]int32, len(p.units))
	for i := range p.units {
		if u := &p.units[i]; u.kind != none {
			p.touch(int32(i))
			p.aside[i] = u.seats
		}
	}
	p.replan(true)
	better := p.moved()*100 <= fair*105
	if !better {
		p.replan(false)
	}
	p.aside = nil
	return better
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

// replan makes the plan from scratch, or gives all units the seats that were set
// aside.
func (p *Planner) replan(scratch bool) {
	for s := range p.slots {
		p.load[s], p.rate[s] = 0, 0
		p.slots[s].units = p.slots[s].units[:0]
		p.widen(int32(s))
	}
	var units []int32
	for _, k := range p.kindOrder {
		units = slices.AppendSeq(units, p.unitsOf(k))
	}
	for _, i := range units {
		u := &p.units[i]
		if u.seats = nil; !scratch {
			u.seats = p.aside[i]
			p.settle(i)
		}
	}
	if scratch {
		p.fill(units)
	}
}

// moved counts the checks that this Apply has given to a checker so far.
func (p *Planner) moved() int {
	sum := 0
	for _, i := range p.dirty {
		u := &p.units[i]
		for _, s := range u.seats {
			if !contains(p.kept(u.before), s) {
				sum += len(u.members)
			}
		}
	}
	return sum
}
