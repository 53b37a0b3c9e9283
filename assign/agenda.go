package assign

import "slices"

// agenda lists the units to look at.
type agenda struct {
	forest   *forest
	seats    *seats
	needs    *needs
	rankings *rankings

	step   uint32
	visits []int32 // in this step
	wanted []int32 // units that could use a new checker
	parts  []int32 // units to look at later, as those just cut off from others
}

// begin begins a step.
func (a *agenda) begin() {
	a.step++
	a.visits = a.visits[:0]
}

// visit lists a unit for this step.
func (a *agenda) visit(i int32) {
	if u := a.seats.unit(i); u.visited != a.step {
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

// visited returns the units listed for this step.
func (a *agenda) visited() []int32 { return a.visits }

// want lists a unit if it could use a new checker.
func (a *agenda) want(i int32) {
	if u := a.seats.unit(i); !u.wanted && a.needs.wants(u) {
		u.wanted = true
		a.wanted = append(a.wanted, i)
	}
}

// review returns the wanted units that can still use a checker. The list is valid
// until the next unit is wanted.
func (a *agenda) review() []int32 {
	list := a.wanted
	a.wanted = a.wanted[:0]
	for _, i := range list {
		a.seats.unit(i).wanted = false
	}
	for _, i := range list {
		if a.seats.unit(i).kind != nil {
			a.want(i)
		}
	}
	return a.wanted
}

// visitWanted lists for this step all wanted units, or those that a newcomer can serve.
func (a *agenda) visitWanted(newcomers []int32, all bool) {
	for _, i := range a.review() {
		if all || slices.ContainsFunc(newcomers, a.seats.unit(i).kind.class.has) {
			a.visit(i)
		}
	}
}

// touchEmpty adds the visited units without seats to the units that the journal
// reports.
func (a *agenda) touchEmpty() {
	for _, i := range a.visits {
		if len(a.seats.unit(i).seats) == 0 {
			a.seats.touch(i)
		}
	}
}

// halve cuts a unit's leaf in two. It returns the unit's halves, or the unit alone if
// its endpoints stay together. It lists all new units for later.
func (a *agenda) halve(i int32) []int32 {
	halves, ok := a.forest.halve(i, a.addPart)
	if ok {
		a.rankings.forget()
	}
	return halves
}

// divisible reports whether a unit can be cut, by one call of halve or by several.
func (a *agenda) divisible(i int32) bool { return a.forest.divisible(a.seats.unit(i)) }

// addPart lists for later a unit that was cut off from another. It also lists it for this step
// if the other is listed, and as wanted if it could use a new checker.
func (a *agenda) addPart(i int32) {
	if a.seats.unit(i).visited == a.step {
		a.visits = append(a.visits, i)
	}
	a.want(i)
	a.later(i)
}

// later lists a unit to look at after the others.
func (a *agenda) later(i int32) { a.parts = append(a.parts, i) }

// drainParts returns the units listed for later, and clears the list.
func (a *agenda) drainParts() []int32 {
	parts := slices.Clone(a.parts)
	a.parts = a.parts[:0]
	return parts
}

// nextPart removes and returns the latest unit listed for later.
func (a *agenda) nextPart() (i int32, ok bool) {
	last := len(a.parts) - 1
	if last < 0 {
		return none, false
	}
	i = a.parts[last]
	a.parts = a.parts[:last]
	return i, true
}
