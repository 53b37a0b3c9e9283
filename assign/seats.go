package assign

import (
	"slices"

	"hdsd/health"
)

// seats is the plan itself: the units and their checkers. It updates room and
// classes, and keeps each unit's earlier seats during a step.
type seats struct {
	fleet   *fleet
	room    *room
	classes *classes

	units  []unit
	free   []int32   // numbers that no unit has
	chairs []int32   // memory for units' lists of seats
	held   [][]int32 // by slot: the units in which the checker has a seat or is a substitute

	step    uint32
	dirty   []int32   // units whose seats changed in this step
	earlier []int32   // their earlier seats and substitutes
	saved   [][]int32 // seats of all units while another plan is tried, otherwise nil
}

// span is a range in earlier.
type span struct{ from, to int32 }

// at returns a unit. It is valid until a unit is added.
func (p *seats) unit(i int32) *unit { return &p.units[i] }

// len is greater than every unit's number.
func (p *seats) len() int { return len(p.units) }

// empty reports whether nobody checks anything.
func (p *seats) empty() bool { return p.room.idle() }

// unitsOf lists the units in which a checker has a seat or is a substitute.
func (p *seats) unitsOf(s int32) []int32 { return p.held[s] }

// open makes room for the slot of a checker that has a new seat.
func (p *seats) open(s int32) {
	for len(p.held) <= int(s) {
		p.held = append(p.held, nil)
	}
}

// disown clears a checker's list of units. The caller then removes the checker from
// each of them.
func (p *seats) disown(s int32) { p.held[s] = nil }

// begin begins a step.
func (p *seats) begin() {
	p.step++
	p.dirty, p.earlier = p.dirty[:0], p.earlier[:0]
}

// add adds a unit without checkers.
func (p *seats) add(u unit) int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free, p.units[i] = p.free[:n-1], u
		return i
	}
	p.units = append(p.units, u)
	return int32(len(p.units) - 1)
}

// reserve makes room for the given number of additional units.
func (p *seats) reserve(units int) {
	p.units = slices.Grow(p.units, max(units-len(p.free), 0))
}

// allot returns room for a few seats, from memory that units share.
func (p *seats) allot(n int) []int32 {
	const blockSize = 1 << 12
	if cap(p.chairs)-len(p.chairs) < n {
		p.chairs = make([]int32, 0, blockSize)
	}
	start := len(p.chairs)
	p.chairs = p.chairs[:start+n]
	return p.chairs[start : start : start+n]
}

// touch keeps a unit's present seats before they change.
func (p *seats) touch(i int32) *unit {
	u := &p.units[i]
	if u.touched != p.step {
		start := len(p.earlier)
		p.earlier = append(append(p.earlier, u.seats...), u.substitutes...)
		if len(u.substitutes) > 0 {
			slices.Sort(p.earlier[start:])
		}
		u.touched, u.before = p.step, span{int32(start), int32(len(p.earlier))}
		p.dirty = append(p.dirty, i)
	}
	return u
}

// bear marks a unit whose endpoints are all new, and which had no seats before.
func (p *seats) bear(i int32) {
	u := &p.units[i]
	u.born, u.touched = true, p.step
	p.dirty = append(p.dirty, i)
}

// changes returns the units whose seats changed in this step, in no particular order.
// The caller may sort the list.
func (p *seats) changes() []int32 { return p.dirty }

// changed reports whether a unit's seats changed in this step.
func (p *seats) changed(i int32) bool { return p.units[i].touched == p.step }

// before returns a unit's seats before this step.
func (p *seats) before(u *unit) []int32 { return p.earlier[u.before.from:u.before.to] }

// seat gives a checker a seat in a unit.
func (p *seats) seat(i, s int32) {
	u := p.touch(i)
	if u.seats == nil {
		u.seats = p.allot(min(u.kind.wants(), 8))
	}
	u.seats = insert(u.seats, s)
	p.enter(i, s)
}

// unseat removes a checker's seat in a unit.
func (p *seats) unseat(i, s int32) {
	u := p.touch(i)
	u.seats = without(u.seats, s)
	p.leave(i, s)
}

// substitute makes a checker a substitute in a unit.
func (p *seats) substitute(i, s int32) {
	u := p.touch(i)
	u.substitutes = insert(u.substitutes, s)
	p.room.bookSpare(s, u.size())
	p.enter(i, s)
}

// dismiss removes a substitute from a unit.
func (p *seats) dismiss(i, s int32) {
	u := p.touch(i)
	u.substitutes = without(u.substitutes, s)
	p.room.bookSpare(s, -u.size())
	p.leave(i, s)
}

// promote gives a substitute a seat.
func (p *seats) promote(i, s int32) {
	u := p.touch(i)
	u.substitutes = without(u.substitutes, s)
	u.seats = insert(u.seats, s)
	p.room.bookSpare(s, -u.size())
}

// enter adds a unit to a checker's list.
func (p *seats) enter(i, s int32) {
	u := &p.units[i]
	p.book(s, u.size(), u.kind)
	p.held[s] = append(p.held[s], i)
}

// leave removes a unit from a checker's list.
func (p *seats) leave(i, s int32) {
	u := &p.units[i]
	p.book(s, -u.size(), u.kind)
	list := p.held[s]
	if index := slices.Index(list, i); index >= 0 {
		list[index] = list[len(list)-1]
		p.held[s] = list[:len(list)-1]
	}
}

// book adds endpoints of a kind to a checker's load, or removes them.
func (p *seats) book(s, endpoints int32, k *kind) {
	if p.room.book(s, endpoints, k.rate) {
		p.widen(s)
	}
}

// widen records that a checker has more room.
func (p *seats) widen(s int32) { p.classes.widen(s, p.fleet.zone(s), p.room.leeway(s)) }

// give assigns a unit without checkers the seats and substitutes that its endpoints
// had before.
func (p *seats) give(i int32, lists [2][]int32) {
	u := &p.units[i]
	u.seats, u.substitutes = slices.Clone(lists[0]), slices.Clone(lists[1])
	for _, s := range u.seats {
		p.enter(i, s)
	}
	for _, s := range u.substitutes {
		p.room.bookSpare(s, u.size())
		p.enter(i, s)
	}
}

// dissolve removes a unit. Another unit may then use its number.
func (p *seats) dissolve(i int32) {
	u := &p.units[i]
	for _, s := range u.seats {
		p.leave(i, s)
	}
	for _, s := range u.substitutes {
		p.room.bookSpare(s, -u.size())
		p.leave(i, s)
	}
	*u = unit{}
	p.free = append(p.free, i)
}

// remove removes an endpoint from its unit.
func (p *seats) remove(i int32, id health.EndpointID, hash uint64) {
	u := &p.units[i]
	index := slices.Index(u.members, id)
	u.members = slices.Delete(u.members, index, index+1)
	u.sum -= hash
	for _, s := range u.seats {
		p.book(s, -1, u.kind)
	}
	for _, s := range u.substitutes {
		p.book(s, -1, u.kind)
		p.room.bookSpare(s, -1)
	}
}

// divide moves a unit's endpoints from index on to a new unit with the same checkers. sum is
// the sum of the moved endpoints' hashes.
func (p *seats) divide(i int32, index int, sum uint64) int32 {
	part := p.add(p.units[i])
	u, n := &p.units[i], &p.units[part]
	n.members, n.seats, n.substitutes = slices.Clone(u.members[index:]), slices.Clone(u.seats), slices.Clone(u.substitutes)
	n.wanted, n.sum = false, sum
	u.members = u.members[:index:index]
	u.sum -= sum
	if p.saved != nil {
		p.saved = append(p.saved, make([][]int32, len(p.units)-len(p.saved))...)
		p.saved[part] = slices.Clone(p.saved[i])
	}
	for _, s := range n.all() {
		p.held[s] = append(p.held[s], part)
	}
	if n.touched == p.step {
		p.dirty = append(p.dirty, part)
	}
	return part
}

// save keeps all seats before another plan is tried.
func (p *seats) save() {
	p.saved = make([][]int32, len(p.units))
	for i := range p.units {
		if u := &p.units[i]; u.kind != nil {
			p.touch(int32(i))
			p.saved[i] = u.seats
		}
	}
}

// clear removes the seats of all units, which the caller lists. No unit may have a
// substitute.
func (p *seats) clear(units []int32) {
	for s := range p.held {
		p.room.clear(int32(s))
		p.held[s] = p.held[s][:0]
		p.widen(int32(s))
	}
	for _, i := range units {
		p.units[i].seats = nil
	}
}

// restore gives empty units their saved seats.
func (p *seats) restore(units []int32) {
	for _, i := range units {
		p.units[i].seats = p.saved[i]
		for _, s := range p.saved[i] {
			p.enter(i, s)
		}
	}
}

// drop forgets the saved seats.
func (p *seats) drop() { p.saved = nil }

// moved counts the checks that this step moved to another checker.
func (p *seats) moved() int {
	sum := 0
	for _, i := range p.dirty {
		u := &p.units[i]
		for _, s := range u.seats {
			if !slices.Contains(p.before(u), s) {
				sum += len(u.members)
			}
		}
	}
	return sum
}
