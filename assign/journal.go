package assign

import (
	"cmp"
	"slices"

	"hdsd/assign/internal/trie"
	"hdsd/health"
)

// journal reports what a step changed, in an order that depends on endpoints and
// checkers only. It also keeps the plan's digest, a sum over all seats. Each seat
// adds the product of its endpoint's hash and its checker's hash.
type journal struct {
	fleet     *fleet
	room      *room
	forest    *forest
	endpoints *endpoints
	seats     *seats
	needs     *needs

	sum   uint64   // the digest
	parts []uint64 // parts of the digest, by slot

	added   []health.EndpointID // endpoints that joined units with others in them
	changed []changed

	// The fields below are valid during one close.
	diff    Diff
	waiting bool // endpoints without checkers wait for the end of settling
	cold    bool
	moves   []Move // by slot
	moved   []int32
	buffer  []health.EndpointID
}

// changed describes an endpoint that left its earlier unit.
type changed struct {
	id       health.EndpointID
	key      trie.Key
	checkers []int32
	removed  bool
	renewed  bool // its class changed
}

// digest returns the digest of the plan; digestOf returns the part of one slot.
func (j *journal) digest() uint64          { return j.sum }
func (j *journal) digestOf(s int32) uint64 { return j.parts[s] }

// open resets the state of a slot.
func (j *journal) open(s int32) {
	for len(j.parts) <= int(s) {
		j.parts, j.moves = append(j.parts, 0), append(j.moves, Move{})
	}
}

// note records the checkers of an endpoint that is about to leave its unit.
func (j *journal) note(id health.EndpointID, removed, renewed bool) {
	u := j.seats.unit(j.endpoints.unit(id))
	j.changed = append(j.changed, changed{id, j.endpoints.key(id), u.all(), removed, renewed})
}

// start records a unit made in this step. It reports whether some of its endpoints
// are new or changed.
func (j *journal) start(i int32) bool {
	u := j.seats.unit(i)
	news, moved := 0, false
	for _, id := range u.members {
		f := j.endpoints.marks(id)
		if f&isNew != 0 {
			news++
		}
		moved = moved || f&isMoved != 0
	}
	u.mixed = moved || news > 0 && news < len(u.members)
	switch {
	case news == len(u.members):
		j.seats.bear(i)
	case news > 0:
		for _, id := range u.members {
			if j.endpoints.hasFlag(id, isNew) {
				j.added = append(j.added, id)
			}
		}
	}
	return news > 0 || moved
}

// close returns what the step changed, and begins the next step. Endpoints without a
// checker may wait; cold means that the plan was empty before.
func (j *journal) close(waiting, cold bool) Diff {
	j.diff, j.waiting, j.cold = Diff{}, waiting, cold
	for _, i := range j.arranged() {
		j.tellUnit(i)
	}
	slices.SortFunc(j.added, func(a, b health.EndpointID) int {
		return cmp.Or(compareKeys(j.endpoints.key(a), j.endpoints.key(b)), cmp.Compare(a, b))
	})
	for _, id := range j.added {
		j.tell([]health.EndpointID{id}, j.endpoints.hash(id), nil, j.current(id), false)
		j.endpoints.unmark(id, isNew)
	}
	slices.SortStableFunc(j.changed, func(a, b changed) int {
		return cmp.Or(compareKeys(a.key, b.key), cmp.Compare(a.id, b.id))
	})
	for n := range j.changed {
		j.tellChanged(&j.changed[n])
	}
	j.added, j.changed = nil, nil
	diff := j.diff
	diff.Moves, j.diff = j.collectMoves(), Diff{}
	return diff
}

func compareKeys(a, b trie.Key) int {
	return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo))
}

// current lists the present checkers of an endpoint.
func (j *journal) current(id health.EndpointID) []int32 {
	return j.seats.unit(j.endpoints.unit(id)).current()
}

// arranged sorts the changed units by their content.
func (j *journal) arranged() []int32 {
	list := j.seats.changes()
	if len(list) < j.seats.len()/16 {
		slices.SortFunc(list, j.forest.inOrder)
		return list
	}
	list = list[:0]
	for i := range j.forest.units() {
		if j.seats.changed(i) {
			list = append(list, i)
		}
	}
	return list
}

// collectMoves lists the recorded moves, by checker.
func (j *journal) collectMoves() []Move {
	moves := make([]Move, 0, len(j.moved))
	for _, s := range j.moved {
		moves = append(moves, j.moves[s])
		j.moves[s] = Move{}
	}
	j.moved = j.moved[:0]
	slices.SortFunc(moves, func(a, b Move) int { return cmp.Compare(a.Checker, b.Checker) })
	merged := moves[:0] // a checker that left and joined at once had two slots
	for _, m := range moves {
		if n := len(merged); n > 0 && merged[n-1].Checker == m.Checker {
			merged[n-1].Add, merged[n-1].Remove = append(merged[n-1].Add, m.Add...), append(merged[n-1].Remove, m.Remove...)
		} else {
			merged = append(merged, m)
		}
	}
	return merged
}

// tellUnit reports a unit's endpoints, except those reported one by one.
func (j *journal) tellUnit(i int32) {
	u := j.seats.unit(i)
	members, sum := u.members, u.sum
	if u.born {
		for _, id := range members {
			j.endpoints.unmark(id, isNew)
		}
	} else if u.mixed {
		j.buffer = j.buffer[:0]
		for _, id := range members {
			if !j.endpoints.hasFlag(id, isNew|isMoved) {
				j.buffer = append(j.buffer, id)
			}
		}
		members = j.buffer
		sum = j.endpoints.sum(members)
	}
	j.tell(members, sum, j.seats.before(u), u.current(), false)
	u.before, u.born, u.mixed = span{}, false, false
}

// tellChanged reports an endpoint that left its unit.
func (j *journal) tellChanged(c *changed) {
	ids := []health.EndpointID{c.id}
	if c.removed {
		j.record(c.checkers, nil, ids, c.key.Lo)
		return
	}
	j.endpoints.unmark(c.id, isMoved)
	j.tell(ids, j.endpoints.hash(c.id), c.checkers, j.current(c.id), c.renewed)
}

// tell records the endpoints' change of checkers, and which endpoints became
// uncheckable or checkable.
func (j *journal) tell(ids []health.EndpointID, sum uint64, previous, current []int32, renewed bool) {
	j.record(previous, current, ids, sum)
	if len(current) > 0 && !j.endpoints.anyUncheckable() {
		return
	}
	for _, id := range ids {
		switch bare := j.endpoints.hasFlag(id, isUncheckable); {
		case len(current) > 0 && bare:
			j.endpoints.unmark(id, isUncheckable)
			j.diff.Checkable = append(j.diff.Checkable, id)
		case len(current) == 0 && (!bare && !j.waiting || bare && renewed):
			j.endpoints.mark(id, isUncheckable)
			u := j.seats.unit(j.endpoints.unit(id))
			reason := Waiting
			if !j.waiting {
				reason = j.needs.shortage(u)
			}
			j.diff.Uncheckable = append(j.diff.Uncheckable, Uncheckable{id, u.kind.id, reason})
		}
	}
}

// record adds endpoints to the moves of the checkers that lose or get them.
func (j *journal) record(previous, current []int32, ids []health.EndpointID, sum uint64) {
	if len(ids) == 0 {
		return
	}
	for _, s := range previous {
		if !slices.Contains(current, s) {
			m := j.move(s)
			m.Remove = append(m.Remove, ids...)
			j.sum -= sum * j.fleet.hash(s)
			j.parts[s] -= sum * j.fleet.hash(s)
		}
	}
	for _, s := range current {
		if !slices.Contains(previous, s) {
			m := j.move(s)
			if m.Add == nil && j.cold {
				m.Add = make([]health.EndpointID, 0, j.room.load(s))
			}
			m.Add = append(m.Add, ids...)
			j.sum += sum * j.fleet.hash(s)
			j.parts[s] += sum * j.fleet.hash(s)
		}
	}
}

// move returns the move of a checker.
func (j *journal) move(s int32) *Move {
	m := &j.moves[s]
	if m.Checker == "" {
		m.Checker = j.fleet.id(s)
		j.moved = append(j.moved, s)
	}
	return m
}
