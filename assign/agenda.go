package assign

import "slices"

// agenda lists the units that are to be looked at.
type agenda struct {
	forest   *forest
	seats    *seats
	needs    *needs
	rankings *rankings

	step   uint32
	visits []int32 // in this step
	wanted []int32 // could use a checker that comes
	parts  []int32 // were cut off from others, and not looked at since
}

// begin begins a step.
func (a *agenda) begin() {
	a.step++
	a.visits = a.visits[:0]
}

// visit lists a unit to be looked at in this step.
func (a *agenda) visit(i int32) {
	if u := a.seats.at(i); u.visited != a.step {
		u.visited = a.step
		a.visits = append(a.visits, i)
	}
}

// visitAll lists all units.
func (a *agenda) visitAll() {
	for i := range a.forest.units() {
		a.visit(i)
	}
}

// visited lists the units that are to be looked at in this step.
func (a *agenda) visited() []int32 { return a.visits }

// want lists a unit if it could use a checker that comes.
func (a *agenda) want(i int32) {
	if u := a.seats.at(i); !u.wanted && a.needs.any(u) {
		u.wanted = true
		a.wanted = append(a.wanted, i)
	}
}

// review lists the units that could use a checker, and still can. The list is
// valid until the next unit is wanted.
func (a *agenda) review() []int32 {
	list := a.wanted
	a.wanted = a.wanted[:0]
	for _, i := range list {
		a.seats.at(i).wanted = false
	}
	for _, i := range list {
		if a.seats.at(i).kind != nil {
			a.want(i)
		}
	}
	return a.wanted
}

// visitWanted lists the wanted units to be looked at: those that a checker that
// came can serve, or all.
func (a *agenda) visitWanted(came []int32, all bool) {
	for _, i := range a.review() {
		if all || slices.ContainsFunc(came, a.seats.at(i).kind.class.has) {
			a.visit(i)
		}
	}
}

// touchEmpty lists the units without seats that were looked at among those that
// are told of.
func (a *agenda) touchEmpty() {
	for _, i := range a.visits {
		if len(a.seats.at(i).seats) == 0 {
			a.seats.touch(i)
		}
	}
}

// halve cuts a unit's leaf in two. It returns the unit's halves, one if it cannot be
// cut; what else is cut off is looked at later.
func (a *agenda) halve(i int32) []int32 {
	halves, ok := a.forest.halve(i, a.addPart)
	if ok {
		a.rankings.forget()
	}
	return halves
}

// divisible tells whether halve can cut a unit.
func (a *agenda) divisible(i int32) bool { return a.forest.divisible(a.seats.at(i)) }

// addPart takes in a unit that was cut off from another.
func (a *agenda) addPart(i int32) {
	if a.seats.at(i).visited == a.step {
		a.visits = append(a.visits, i)
	}
	a.want(i)
	a.later(i)
}

// later lists a unit to be looked at when others were.
func (a *agenda) later(i int32) { a.parts = append(a.parts, i) }

// takeParts takes out all that are listed for later.
func (a *agenda) takeParts() []int32 {
	parts := slices.Clone(a.parts)
	a.parts = a.parts[:0]
	return parts
}

// nextPart takes out the unit that was listed last for later.
func (a *agenda) nextPart() (i int32, ok bool) {
	last := len(a.parts) - 1
	if last < 0 {
		return none, false
	}
	i = a.parts[last]
	a.parts = a.parts[:last]
	return i, true
}
