package assign

import "slices"

// squeezer finds room where checkers are at their ceilings.
type squeezer struct {
	fleet  *fleet
	room   *room
	seats  *seats
	agenda *agenda
	needs  *needs
	mover  *mover
	budget *budget

	step uint32
	full []uint32 // by slot: the step in which it could not be relieved further
	jams []jam    // by slot
}

// jam records a unit for which a checker's other units could not make room in a step. In that
// step, the checker does not move units again for a unit that costs no less and has no fewer
// checkers to choose from. Otherwise a fleet at its ceilings would spend most of the time here.
type jam struct {
	step   uint32
	choice int // number of checkers that may serve the unit
	cost   int64
}

// blocks reports whether to skip a unit with the given choice and cost.
func (j *jam) blocks(step uint32, choice int, cost int64) bool {
	return j.step == step && choice >= j.choice && cost >= j.cost
}

// budget bounds how many checkers and units one step looks at.
type budget struct {
	limit, looks int
	unbounded    bool
}

func (b *budget) spend(looks int) { b.looks += looks }
func (b *budget) spent() bool     { return !b.unbounded && b.looks > b.limit }

// reset begins a step, which may have no bound.
func (b *budget) reset(unbounded bool) { b.looks, b.unbounded = 0, unbounded }

// begin begins a step.
func (q *squeezer) begin() {
	q.step++
	for len(q.full) < q.fleet.len() {
		q.full, q.jams = append(q.full, 0), append(q.jams, jam{})
	}
}

// squeeze finds room for a unit with too few seats by moving other units away. If
// checkers have room for only some of its endpoints, it cuts the unit. It returns the
// parts, which the caller repairs.
func (q *squeezer) squeeze(i int32) (parts []int32) {
	for q.seats.unit(i).short() {
		if q.mover.add(i) || q.makeRoom(i) {
			continue
		}
		if !q.partFits(i) {
			return nil
		}
		return q.agenda.halve(i)
	}
	return nil
}

// partFits reports whether a unit can be cut and a checker has room for part of it.
func (q *squeezer) partFits(i int32) bool {
	if !q.agenda.divisible(i) {
		return false
	}
	u := q.seats.unit(i)
	c, rate := u.kind.class, u.kind.rate
	for z, pool := range c.pools {
		if !c.mayFitIn(int32(z), rate) || !q.needs.allowed(u, int32(z)) {
			continue
		}
		for _, s := range pool {
			if q.room.fits(s, rate) && !u.has(s) {
				return true
			}
		}
		c.narrow(int32(z), q.room)
	}
	return false
}

// makeRoom gives a unit a seat at a checker that others leave for it. First go units
// that do not need the checker as a substitute. Then go units that more checkers can
// serve, if they can go elsewhere. If the unit has no seat at all, units that have
// other seats give up the checker in any case.
func (q *squeezer) makeRoom(i int32) bool {
	u := q.seats.unit(i)
	if q.budget.spent() && len(u.seats) > 0 {
		return false
	}
	cost, choice := u.cost(), q.needs.choice(u)
	list, looks := q.needs.eligible(u, func(s int32) bool {
		return cost <= q.room.ceiling(s) && q.full[s] != q.step && (len(u.seats) == 0 || !q.jams[s].blocks(q.step, choice, cost))
	})
	q.budget.spend(looks)
	for _, s := range list {
		if q.room.spare(s) > 0 && q.dismissSpare(s, cost) {
			q.seats.seat(i, s)
			return true
		}
	}
	for _, s := range list {
		if q.full[s] == q.step {
			continue
		}
		if q.displace(i, s, cost) || len(u.seats) == 0 && q.deprive(s, cost) {
			q.seats.seat(i, s)
			return true
		}
	}
	return false
}

// displace moves a checker's other units elsewhere until a cost fits. It reports
// whether the cost fits.
func (q *squeezer) displace(i, s int32, cost int64) bool {
	choice, j := q.needs.choice(q.seats.unit(i)), &q.jams[s]
	if q.room.fits(s, cost) {
		return true
	}
	if j.blocks(q.step, choice, cost) {
		return false
	}
	if q.moveOthers(s, choice, cost) {
		return true
	}
	if j.step != q.step || choice <= j.choice && cost <= j.cost {
		*j = jam{q.step, choice, cost}
	}
	return false
}

// moveOthers moves units elsewhere that have more checkers to choose from, until a
// cost fits. It reports whether the cost fits.
func (q *squeezer) moveOthers(s int32, choice int, cost int64) bool {
	q.budget.spend(len(q.seats.unitsOf(s)))
	for _, o := range q.mover.sheddable(s, func(o *unit) bool {
		return o.kind.rate > 0 && q.needs.choice(o) > choice && o.seated(s) && o.kind.class.mayFit(o.cost())
	}) {
		if q.room.fits(s, cost) {
			return true
		}
		q.mover.shift(o, s)
	}
	return q.room.fits(s, cost)
}

// dismissSpare removes a substitute from units that have enough live checkers without
// it, until a cost fits. It reports whether the cost fits.
func (q *squeezer) dismissSpare(s int32, cost int64) bool {
	for _, o := range q.mover.sheddable(s, func(o *unit) bool {
		return o.kind.rate > 0 && o.substituted(s) && q.needs.living(o) > o.fewest()
	}) {
		if q.room.fits(s, cost) {
			return true
		}
		q.seats.dismiss(o, s)
		q.agenda.want(o)
	}
	return q.room.fits(s, cost)
}

// deprive removes a checker's seats in units that have other seats, until a cost
// fits. It reports whether the cost fits.
func (q *squeezer) deprive(s int32, cost int64) bool {
	for _, o := range q.mover.costly(s) {
		if q.room.fits(s, cost) {
			return true
		}
		if u := q.seats.unit(o); len(u.seats) > 1 {
			q.seats.unseat(o, s)
			q.agenda.want(o)
		}
	}
	if q.room.fits(s, cost) {
		return true
	}
	q.full[s] = q.step // nothing is left to remove
	return false
}

// enforce makes checkers above their ceilings give up seats, and then their work as
// substitutes. A seat goes to a checker with room, if there is one. It lists for a
// visit the units that it changes.
func (q *squeezer) enforce() {
	if !q.room.hasCeilings() {
		return
	}
	var above []int32
	for s := range int32(q.fleet.len()) {
		if q.room.aboveCeiling(s) && q.fleet.isKnown(s) {
			above = append(above, s)
		}
	}
	slices.SortFunc(above, q.fleet.compare)
	for _, s := range above {
		for _, i := range q.mover.costly(s) {
			if !q.room.aboveCeiling(s) {
				break
			}
			if !q.mover.shift(i, s) {
				q.seats.unseat(i, s)
			}
			q.agenda.visit(i)
		}
		for _, i := range q.mover.helped(s) {
			if q.room.aboveCeiling(s) {
				q.seats.dismiss(i, s)
				q.agenda.visit(i)
			}
		}
	}
}
