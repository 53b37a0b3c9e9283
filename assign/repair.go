package assign

import "slices"

// repairer gives units the seats and substitutes that they should have.
type repairer struct {
	fleet    *fleet
	room     *room
	seats    *seats
	queue    *queue
	agenda   *agenda
	needs    *needs
	tally    *tally
	rankings *rankings
	mover    *mover
	squeezer *squeezer
}

// fill repairs the listed units. It begins with the classes that have the fewest
// checkers, and within a class with the largest units. In each class, it fills
// seats in units' own zones before all others. If checkers have ceilings, each unit of
// the class then gets a first checker before any gets a second.
func (r *repairer) fill(units []int32) {
	r.rankings.forget()
	order := r.queue.order(units)
	for len(order) > 0 {
		n := 1
		for n < len(order) && order[n].class == order[0].class {
			n++
		}
		for _, o := range order[:n] {
			if o.home && r.seats.unit(o.unit).short() {
				r.mover.addHome(o.unit)
			}
		}
		if r.room.hasCeilings() {
			r.deal(order[:n])
		}
		for _, o := range order[:n] {
			r.repair(o.unit)
		}
		for i, ok := r.agenda.nextPart(); ok; i, ok = r.agenda.nextPart() {
			r.repair(i)
		}
		order = order[n:]
	}
}

// deal gives one seat to each unit in turn.
func (r *repairer) deal(order []turn) {
	for n, unmet := 1, true; unmet; n++ {
		unmet = false
		for _, o := range order {
			u := r.seats.unit(o.unit)
			if u.kind.wants() < n {
				continue
			}
			unmet = true
			if len(u.seats) < n {
				r.mover.add(o.unit)
			}
		}
	}
}

// repair gives a unit the seats and substitutes that it should have. It removes those
// in excess, moves seats to better zones, and cuts the unit if only parts find room.
func (r *repairer) repair(i int32) {
	u := r.seats.unit(i)
	wants := u.kind.wants()
	for len(u.seats) > wants {
		r.mover.drop(i)
	}
	for len(u.seats) < wants && r.mover.add(i) {
	}
	if len(u.substitutes) == 0 && !r.needs.wants(u) {
		return
	}
	r.mover.dropSubstitutes(i)
	for range wants {
		if !r.mover.improve(i) {
			break
		}
	}
	r.mover.dropSubstitutes(i)
	if r.room.hasCeilings() && u.short() {
		if parts := r.squeezer.squeeze(i); len(parts) > 0 {
			for _, part := range parts {
				r.repair(part)
			}
			return
		}
	}
	u = r.seats.unit(i)
	if len(u.seats)+len(u.substitutes) == 0 {
		r.seatBlind(i)
	}
	r.substitute(i)
	r.agenda.want(i)
}

// seatBlind gives a unit that no other checker can have to a blind one. Otherwise
// nobody would check the unit while that checker stays blind.
func (r *repairer) seatBlind(i int32) {
	u := r.seats.unit(i)
	cost, chosen, best := u.cost(), int32(none), never
	tally := r.tally
	tally.count(u)
	for s := range int32(r.fleet.len()) {
		if !r.fleet.blind(s) || r.fleet.doubted(s) || !u.kind.class.has(s) || !r.room.fits(s, cost) {
			continue
		}
		if tier := tally.tier(u, r.fleet.zone(s)); tier < best || tier == best && chosen != none && r.rankings.outranks(u, s, chosen) {
			chosen, best = s, tier
		}
	}
	if chosen != none {
		r.seats.seat(i, chosen)
	}
}

// substitute finds the substitutes that a unit lacks: for doubted and blind checkers,
// for lost ones where too few are left, and in a divided zone. It cuts the unit if only
// parts find room.
func (r *repairer) substitute(i int32) {
	for r.needs.lackingHome(r.seats.unit(i)) > 0 && r.mover.addHomeSubstitute(i) {
	}
	for r.needs.lackingAnywhere(r.seats.unit(i)) > 0 {
		if r.mover.addSubstitute(i) {
			continue
		}
		if r.room.hasCeilings() && r.squeezer.partFits(i) {
			for _, half := range r.agenda.halve(i) {
				r.substitute(half)
			}
		}
		return
	}
}

// prune removes the seats of checkers that left or are no longer able or allowed. It
// also removes substitutes that are no longer live, able or allowed, except for doubted
// ones: their peers may be about to be doubted for the same cause.
func (r *repairer) prune(i int32) {
	u := r.seats.unit(i)
	c, plain := u.kind.class, u.kind.plain()
	banned := func(s int32) bool {
		z := r.fleet.zone(s)
		return !plain && z != none && !r.needs.allowed(u, z)
	}
	for _, s := range slices.Backward(u.seats) {
		if !r.fleet.isSeated(s) || r.fleet.isKnown(s) && !c.has(s) || banned(s) {
			r.seats.unseat(i, s)
		}
	}
	for _, s := range slices.Backward(u.substitutes) {
		if !r.fleet.live(s) && (!r.fleet.doubted(s) || r.fleet.blind(s)) || !c.has(s) || banned(s) {
			r.seats.dismiss(i, s)
		}
	}
}
