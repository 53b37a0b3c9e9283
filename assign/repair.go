package assign

import (
	"cmp"
	"math/bits"
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
	if p.held && !p.settling {
		for k := range p.kinds {
			for _, i := range p.kinds[k].leaves {
				p.visit(i)
			}
		}
		return
	}
	for _, list := range [][]int32{p.left, p.wentLost, p.came} {
		for _, s := range list {
			for _, i := range p.slots[s].units {
				p.visit(i)
			}
		}
	}
	if len(p.came) == 0 || p.settling {
		return
	}
	for k := range p.kinds {
		c := &p.classes[p.kinds[k].class]
		if !slices.ContainsFunc(p.came, c.has) {
			continue
		}
		for _, i := range p.kinds[k].leaves {
			if u := &p.units[i]; u.visited != p.step && p.wanting(u) {
				p.visit(i)
			}
		}
	}
}

// wanting tells whether a unit could use a checker that came.
func (p *Planner) wanting(u *unit) bool {
	k := &p.kinds[u.kind]
	if len(u.seats) < int(k.redundancy) {
		return true
	}
	live, own, twice := len(u.extra), k.zone == none, false
	for n, s := range u.seats {
		if p.live[s] {
			live++
		}
		own = own || p.home[s] == k.zone
		for _, o := range u.seats[:n] {
			twice = twice || p.home[o] == p.home[s]
		}
	}
	return !own || twice || live < min(2, int(k.redundancy))
}

// prune takes away the seats of those that left or are no longer able.
func (p *Planner) prune(i int32) {
	u := &p.units[i]
	c := p.classOf(u)
	for _, v := range slices.Backward(u.seats) {
		if s := v; !p.slots[s].seated || p.slots[s].known && !c.has(s) {
			p.stand(i, s)
		}
	}
	for _, v := range slices.Backward(u.extra) {
		if s := v; !p.live[s] || !c.has(s) {
			p.dismiss(i, s)
		}
	}
}

// fill puts the listed units right, those with the scarcest checkers first, of
// these the largest first, and seats in their own zones before all others.
func (p *Planner) fill(units []int32) {
	order := p.sorted(units)
	for len(order) > 0 {
		n := 1
		for n < len(order) && order[n].class == order[0].class {
			n++
		}
		for _, o := range order[:n] {
			u := &p.units[o.unit]
			p.tally(u, false)
			if len(u.seats) < int(p.kinds[u.kind].redundancy) && len(u.extra) == 0 {
				if s := p.pickOwn(o.unit); s != none {
					p.take(o.unit, s)
				}
			}
		}
		for _, o := range order[:n] {
			p.repair(o.unit)
		}
		order = order[n:]
	}
}

// turn is a unit's place in the order of filling.
type turn struct {
	class int32 // rank of its class
	size  int32 // size class, largest first
	hash  uint64
	unit  int32
}

func (p *Planner) sorted(units []int32) []turn {
	classes := make([]int32, len(p.classes))
	for c := range classes {
		classes[c] = int32(c)
	}
	slices.SortFunc(classes, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.classes[a].total, p.classes[b].total), cmp.Compare(p.classes[a].hash, p.classes[b].hash))
	})
	place := make([]int32, len(classes))
	for n, c := range classes {
		place[c] = int32(n)
	}
	order := make([]turn, len(units))
	for n, i := range units {
		u := &p.units[i]
		order[n] = turn{place[p.kinds[u.kind].class], -int32(bits.Len(uint(len(u.members)))), u.hash, i}
	}
	slices.SortFunc(order, func(a, b turn) int {
		if c := cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.size, b.size), cmp.Compare(a.hash, b.hash)); c != 0 {
			return c
		}
		return p.inOrder(a.unit, b.unit)
	})
	return order
}

// inOrder compares two units by what they are, not by their numbers.
func (p *Planner) inOrder(a, b int32) int {
	u, v := &p.units[a], &p.units[b]
	return cmp.Or(
		cmp.Compare(p.kinds[u.kind].hash, p.kinds[v.kind].hash),
		cmp.Compare(u.prefix.hi, v.prefix.hi), cmp.Compare(u.prefix.lo, v.prefix.lo), cmp.Compare(u.depth, v.depth))
}

// repair gives a unit the seats and substitutes that it should have.
func (p *Planner) repair(i int32) {
	u := &p.units[i]
	redundancy := int(p.kinds[u.kind].redundancy)
	for len(u.seats) > redundancy {
		p.stand(i, p.worst(u))
	}
	for len(u.seats) < redundancy && p.add(i) {
	}
	p.relieve(i)
	for range redundancy {
		if !p.spread(i) {
			break
		}
	}
	p.relieve(i)
	for p.lacking(u) > 0 {
		p.tally(u, true)
		s := p.pick(i)
		if s == none {
			break
		}
		p.help(i, s)
	}
}

// lacking is how many live checkers a unit is short of; negative if it has
// more than it must have.
func (p *Planner) lacking(u *unit) int {
	live := len(u.extra)
	for _, s := range u.seats {
		if p.live[s] {
			live++
		}
	}
	return min(2, int(p.kinds[u.kind].redundancy)) - live
}

// relieve sends away the substitutes that are not needed any more.
func (p *Planner) relieve(i int32) {
	u := &p.units[i]
	for len(u.extra) > 0 && p.lacking(u) < 0 {
		p.dismiss(i, slices.MinFunc(u.extra, func(a, b int32) int {
			return cmp.Compare(p.score(u, a), p.score(u, b))
		}))
	}
}

// add fills a seat: with a substitute, unless another is in a better zone.
func (p *Planner) add(i int32) bool {
	u := &p.units[i]
	p.tally(u, false)
	s := p.pick(i)
	if len(u.extra) > 0 {
		helper := slices.MaxFunc(u.extra, func(a, b int32) int {
			return cmp.Or(cmp.Compare(p.worth(u, a), p.worth(u, b)), cmp.Compare(p.score(u, a), p.score(u, b)))
		})
		if s == none || p.worth(u, helper) >= p.worth(u, s) {
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

// worth tells how good a checker's zone is for a unit whose others are tallied.
func (p *Planner) worth(u *unit, s int32) int {
	switch z := p.home[s]; {
	case p.used[z] > 0:
		return 0
	case z != p.kinds[u.kind].zone:
		return 1
	}
	return 2
}

// spread brings a unit into one more zone, or into its own, if it can.
func (p *Planner) spread(i int32) bool {
	u := &p.units[i]
	if p.tally(u, false) {
		return false
	}
	s := p.pickOwn(i)
	if s == none && slices.ContainsFunc(u.seats, func(s int32) bool { return p.used[p.home[s]] > 1 }) {
		s = p.pickNew(i)
	}
	if s == none || len(u.seats) == 0 {
		return false
	}
	p.stand(i, p.worst(u))
	p.take(i, s)
	return true
}

// worst is the seat that a unit can best do without: of those in one zone with
// another, else not in its own zone; live ones before those that are kept for
// someone; of these the one that ranks lowest.
func (p *Planner) worst(u *unit) int32 {
	p.tally(u, false)
	own := p.kinds[u.kind].zone
	value := func(s int32) int {
		v := 0
		if z := p.home[s]; z == none || p.used[z] == 1 {
			v += 2
			if z == own {
				v += 2
			}
		}
		if !p.live[s] {
			v++
		}
		return v
	}
	return slices.MinFunc(u.seats, func(a, b int32) int {
		return cmp.Or(cmp.Compare(value(a), value(b)), cmp.Compare(p.score(u, a), p.score(u, b)))
	})
}
