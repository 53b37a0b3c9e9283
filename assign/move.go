package assign

import (
	"cmp"
	"slices"
)

// mover makes single moves. A move gives or takes one seat, or the work of one
// substitute.
type mover struct {
	forest *forest
	seats  *seats
	needs  *needs
	picker *picker

	tally    *tally
	rankings *rankings
}

// add fills a seat, with a substitute of the unit unless another checker is in a
// better zone. It reports whether it found a checker.
func (m *mover) add(i int32) bool {
	u, tally := m.seats.unit(i), m.tally
	tally.count(u)
	s := m.picker.pick(u, never)
	if len(u.substitutes) > 0 {
		tier := func(s int32) int { return tally.tierOf(u, s) }
		helper := slices.MaxFunc(u.substitutes, func(a, b int32) int {
			return cmp.Or(-cmp.Compare(tier(a), tier(b)), m.rankings.compare(u, a, b))
		})
		if s == none || tier(helper) <= tier(s) {
			m.seats.promote(i, helper)
			return true
		}
	}
	if s == none {
		return false
	}
	m.seats.seat(i, s)
	return true
}

// addHome fills a seat in a zone as good as the unit's own, if it can.
func (m *mover) addHome(i int32) {
	u := m.seats.unit(i)
	m.tally.count(u)
	if s := m.picker.pick(u, 1); s != none {
		m.seats.seat(i, s)
	}
}

// drop removes a surplus seat of a unit.
func (m *mover) drop(i int32) {
	u := m.seats.unit(i)
	m.tally.count(u)
	m.seats.unseat(i, m.needs.worst(u))
}

// improve moves a seat to a better zone, and reports whether it could.
func (m *mover) improve(i int32) bool {
	u := m.seats.unit(i)
	if len(u.seats) == 0 || m.tally.count(u) {
		return false
	}
	worst := m.needs.worst(u)
	standing := m.tally.remove(u, worst)
	if standing <= m.tally.ideal(u) {
		return false
	}
	s := m.picker.pick(u, standing)
	if s == none {
		return false
	}
	m.swap(i, worst, s)
	return true
}

// swap moves a seat from one checker to another.
func (m *mover) swap(i, from, to int32) {
	m.seats.unseat(i, from)
	m.seats.seat(i, to)
}

// addSubstitute adds a substitute, and reports whether it found one.
func (m *mover) addSubstitute(i int32) bool {
	u := m.seats.unit(i)
	m.tally.countLive(u)
	s := m.picker.pickSubstitute(u)
	if s == none {
		return false
	}
	m.seats.substitute(i, s)
	return true
}

// addHomeSubstitute adds a substitute in the unit's own zone, and reports whether it
// found one.
func (m *mover) addHomeSubstitute(i int32) bool {
	u := m.seats.unit(i)
	m.tally.countLive(u)
	s := m.picker.pickHome(u)
	if s == none {
		return false
	}
	m.seats.substitute(i, s)
	return true
}

// dropSubstitutes removes the substitutes that a unit no longer needs.
func (m *mover) dropSubstitutes(i int32) {
	u := m.seats.unit(i)
	for s := m.needs.idleSubstitute(u); s != none; s = m.needs.idleSubstitute(u) {
		m.seats.dismiss(i, s)
	}
	for m.needs.substitutes(u) > 0 && m.needs.lacking(u) < 0 {
		live := slices.DeleteFunc(slices.Clone(u.substitutes), func(s int32) bool { return !m.needs.fleet.live(s) })
		m.seats.dismiss(i, slices.MinFunc(live, func(a, b int32) int { return m.rankings.compare(u, a, b) }))
	}
}

// shift moves one seat, or the work of a substitute, to a checker with room in an
// equally good zone. It reports whether it found one.
func (m *mover) shift(i, s int32) bool {
	u, tally := m.seats.unit(i), m.tally
	if u.substituted(s) {
		if !m.needs.fleet.live(s) { // others do its work already
			m.seats.dismiss(i, s)
			return true
		}
		tally.countLive(u)
		tied := m.needs.fleet.zone(s) == u.zone && m.needs.lackingHome(u) >= 0
		taker := m.picker.pickRoom(u, max(tally.remove(u, s), 1)) // as in pickSubstitute
		if tied {
			taker = m.picker.pickHomeRoom(u)
		}
		if taker == none {
			return false
		}
		m.seats.dismiss(i, s)
		m.seats.substitute(i, taker)
		return true
	}
	if tally.count(u) {
		return false
	}
	taker := m.picker.pickRoom(u, tally.remove(u, s))
	if taker == none {
		return false
	}
	m.swap(i, s, taker)
	return true
}

// sheddable lists the checker's accepted units. First come those that other checkers can take
// most easily and that rank it lowest.
func (m *mover) sheddable(s int32, accept func(*unit) bool) []int32 {
	var list []int32
	for _, i := range m.seats.unitsOf(s) {
		if accept(m.seats.unit(i)) {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int32) int {
		u, v := m.seats.unit(a), m.seats.unit(b)
		return cmp.Or(
			-cmp.Compare(m.needs.choice(u), m.needs.choice(v)),
			cmp.Compare(m.rankings.score(u, s), m.rankings.score(v, s)),
			m.forest.inOrder(a, b))
	})
	return list
}

// seated lists the units in which a checker has a seat, in the order of sheddable.
func (m *mover) seated(s int32) []int32 {
	return m.sheddable(s, func(u *unit) bool { return u.seated(s) })
}

// costly is seated for units that count toward the checker's ceiling.
func (m *mover) costly(s int32) []int32 {
	return m.sheddable(s, func(u *unit) bool { return u.seated(s) && u.kind.rate > 0 })
}

// helped lists the units in which a checker is a substitute, in the order of
// sheddable.
func (m *mover) helped(s int32) []int32 {
	return m.sheddable(s, func(u *unit) bool { return u.substituted(s) })
}
