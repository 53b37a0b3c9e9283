package assign

import (
	"cmp"
	"slices"

	"hdsd/health"
)

// scratch is memory that is used again and again.
type scratch struct {
	slots   []int32
	zones   []int32
	members []health.EndpointID
	kept    []int32 // what units had
	out     []Move  // by slot
	moved   []int32
}

// diff tells what this Apply changed, in an order that depends on endpoints
// and checkers only.
func (p *Planner) diff() Diff {
	if !p.settling {
		for _, i := range p.visits {
			if len(p.units[i].seats) == 0 {
				p.touch(i)
			}
		}
	}
	var d Diff
	p.dirty = p.arrange(p.dirty)
	for _, i := range p.dirty {
		p.tellUnit(&d, i)
	}
	slices.SortFunc(p.added, func(a, b health.EndpointID) int {
		return cmp.Or(cmp.Compare(p.endpoints[a].Hi, p.endpoints[b].Hi), cmp.Compare(p.endpoints[a].Lo, p.endpoints[b].Lo), cmp.Compare(a, b))
	})
	for _, id := range p.added {
		p.tell(&d, []health.EndpointID{id}, p.endpoints[id].Lo, nil, p.units[p.endpoints[id].unit].now(), false)
		p.flags[id] &^= isNew
	}
	slices.SortStableFunc(p.changed, func(a, b changed) int {
		return cmp.Or(cmp.Compare(a.key.Hi, b.key.Hi), cmp.Compare(a.key.Lo, b.key.Lo), cmp.Compare(a.id, b.id))
	})
	for n := range p.changed {
		p.tellChanged(&d, &p.changed[n])
	}
	d.Moves = p.moves()
	return d
}

// moves gives what report collected, by checker.
func (p *Planner) moves() []Move {
	all := make([]Move, 0, len(p.scratch.moved))
	for _, s := range p.scratch.moved {
		all = append(all, p.scratch.out[s])
		p.scratch.out[s] = Move{}
	}
	p.scratch.moved = p.scratch.moved[:0]
	slices.SortFunc(all, func(a, b Move) int { return cmp.Compare(a.Checker, b.Checker) })
	one := all[:0] // one that left and joined at once had two slots
	for _, m := range all {
		if n := len(one); n > 0 && one[n-1].Checker == m.Checker {
			one[n-1].Add, one[n-1].Remove = append(one[n-1].Add, m.Add...), append(one[n-1].Remove, m.Remove...)
		} else {
			one = append(one, m)
		}
	}
	return one
}

// tellUnit tells of a unit's endpoints, but for those told of one by one.
func (p *Planner) tellUnit(d *Diff, i int32) {
	u := &p.units[i]
	members, sum := u.members, u.sum
	if u.born {
		for _, id := range members {
			p.flags[id] &^= isNew
		}
	} else if u.mixed {
		p.scratch.members = p.scratch.members[:0]
		for _, id := range members {
			if p.flags[id]&(isNew|isMoved) == 0 {
				p.scratch.members = append(p.scratch.members, id)
			}
		}
		members = p.scratch.members
		sum = p.sum(members)
	}
	p.tell(d, members, sum, p.kept(u.before), u.now(), false)
	u.before, u.born, u.mixed = span{}, false, false
}

func (p *Planner) tellChanged(d *Diff, c *changed) {
	ids := []health.EndpointID{c.id}
	if c.removed {
		p.report(c.before, nil, ids, c.key.Lo)
		return
	}
	p.flags[c.id] &^= isMoved
	p.tell(d, ids, p.endpoints[c.id].Lo, c.before, p.units[p.endpoints[c.id].unit].now(), c.renewed)
}

// tell reports how endpoints went from some checkers to others.
func (p *Planner) tell(d *Diff, ids []health.EndpointID, sum uint64, before, now []int32, renewed bool) {
	p.report(before, now, ids, sum)
	if len(now) > 0 && p.bare == 0 {
		return
	}
	for _, id := range ids {
		switch bare := p.flags[id]&isBare != 0; {
		case len(now) > 0 && bare:
			p.flags[id] &^= isBare
			p.bare--
			d.Checkable = append(d.Checkable, id)
		case len(now) == 0 && (!bare && !p.settling || bare && renewed):
			if !bare {
				p.flags[id] |= isBare
				p.bare++
			}
			_, why := p.Shortage(id)
			d.Uncheckable = append(d.Uncheckable, Uncheckable{id, p.kinds[p.endpoints[id].kind].class, why})
		}
	}
}

// report puts endpoints into the Moves of the checkers that had or have them.
func (p *Planner) report(before, now []int32, ids []health.EndpointID, sum uint64) {
	if len(ids) == 0 {
		return
	}
	for _, s := range before {
		if !contains(now, s) {
			m := p.out(s)
			m.Remove = append(m.Remove, ids...)
			p.digest -= sum * p.hash[s]
			p.part[s] -= sum * p.hash[s]
		}
	}
	for _, s := range now {
		if !contains(before, s) {
			m := p.out(s)
			if m.Add == nil && p.cold {
				m.Add = make([]health.EndpointID, 0, p.load[s])
			}
			m.Add = append(m.Add, ids...)
			p.digest += sum * p.hash[s]
			p.part[s] += sum * p.hash[s]
		}
	}
}

// sum is what endpoints are in the digest, which is the sum over all seats of
// the product of the endpoint's hash and the checker's.
func (p *Planner) sum(ids []health.EndpointID) uint64 {
	sum := uint64(0)
	for _, id := range ids {
		sum += p.endpoints[id].Lo
	}
	return sum
}

// out is the Move of a checker.
func (p *Planner) out(s int32) *Move {
	for len(p.scratch.out) <= int(s) {
		p.scratch.out = append(p.scratch.out, Move{})
	}
	m := &p.scratch.out[s]
	if m.Checker == "" {
		m.Checker = p.slots[s].id
		p.scratch.moved = append(p.scratch.moved, s)
	}
	return m
}

func contains(list []int32, s int32) bool { return slices.Contains(list, s) }
