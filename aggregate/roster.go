package aggregate

import (
	"iter"

	"hdsd/health"
)

// roster holds the rows of endpoints and checkers and the seats that join them. It
// lists the endpoints to decide at the end of a step.
type roster struct {
	endpoints []endpoint // by EndpointID
	seats     seats
	checkers  []checker // by number
	numbers   map[string]uint32
	free      []uint32 // numbers that no checker has
	marked    []health.EndpointID
}

func newRoster() roster { return roster{numbers: map[string]uint32{}} }

// endpoint returns the row of a known endpoint, otherwise nil.
func (r *roster) endpoint(id health.EndpointID) *endpoint {
	if int(id) >= len(r.endpoints) || r.endpoints[id].flags&isKnown == 0 {
		return nil
	}
	return &r.endpoints[id]
}

// row returns the row of an endpoint that is or was known.
func (r *roster) row(id health.EndpointID) *endpoint { return &r.endpoints[id] }

// makeRoom returns the row of an endpoint, and adds rows up to it if needed.
func (r *roster) makeRoom(id health.EndpointID) *endpoint {
	for int(id) >= len(r.endpoints) {
		r.endpoints = append(r.endpoints, endpoint{})
	}
	return &r.endpoints[id]
}

// mark lists an endpoint to be decided.
func (r *roster) mark(id health.EndpointID, e *endpoint) {
	if e.flags&isMarked == 0 {
		e.flags |= isMarked
		r.marked = append(r.marked, id)
	}
}

// markAll marks all endpoints of a checker.
func (r *roster) markAll(c uint32) {
	for _, v := range r.checkers[c].votes {
		r.mark(v.Endpoint, &r.endpoints[v.Endpoint])
	}
}

// markedCount counts the marked endpoints. Marks added during a loop over markedAt
// come last.
func (r *roster) markedCount() int { return len(r.marked) }

func (r *roster) markedAt(i int) health.EndpointID { return r.marked[i] }

// clearMarked empties the list of marked endpoints.
func (r *roster) clearMarked() { r.marked = r.marked[:0] }

// checker returns the row of a checker.
func (r *roster) checker(c uint32) *checker { return &r.checkers[c] }

// eachChecker yields the checkers that are connected or have a seat, with their
// numbers.
func (r *roster) eachChecker() iter.Seq2[uint32, *checker] {
	return func(yield func(uint32, *checker) bool) {
		for c := range r.checkers {
			if k := &r.checkers[c]; k.name != "" && !yield(uint32(c), k) {
				return
			}
		}
	}
}

// lookup returns the number of a checker, if it has one.
func (r *roster) lookup(name string) (uint32, bool) {
	c, ok := r.numbers[name]
	return c, ok
}

// number returns the number of a checker, and numbers a new checker. The number is
// free again after drop.
func (r *roster) number(name string) uint32 {
	c, ok := r.numbers[name]
	if ok {
		return c
	}
	if n := len(r.free); n > 0 {
		c, r.free = r.free[n-1], r.free[:n-1]
	} else {
		c = uint32(len(r.checkers))
		r.checkers = append(r.checkers, checker{})
	}
	r.checkers[c].name = name
	r.numbers[name] = c
	return c
}

// drop forgets a checker that has no seat.
func (r *roster) drop(c uint32) {
	delete(r.numbers, r.checkers[c].name)
	r.checkers[c] = checker{}
	r.free = append(r.free, c)
}

// seatsOf returns the seats of an endpoint. They are valid until the next add or
// remove.
func (r *roster) seatsOf(e *endpoint) []seat { return r.seats.block(e) }

// indexOf returns the index of a checker's seat at an endpoint, or -1.
func (r *roster) indexOf(e *endpoint, c uint32) int { return r.seats.find(e, c) }

// find returns an endpoint's row and the index of a checker's seat there, or -1.
func (r *roster) find(id health.EndpointID, name string) (*endpoint, int) {
	e := r.endpoint(id)
	c, ok := r.numbers[name]
	if e == nil || !ok {
		return nil, -1
	}
	return e, r.seats.find(e, c)
}

// seat returns the seat of a checker at an endpoint, if it has one.
func (r *roster) seat(id health.EndpointID, c uint32) *seat {
	e := &r.endpoints[id]
	return &r.seats.block(e)[r.seats.find(e, c)]
}

// add gives a checker a seat at an endpoint and returns its index.
func (r *roster) add(id health.EndpointID, e *endpoint, c uint32) int {
	k := &r.checkers[c]
	k.votes = append(k.votes, health.Vote{Endpoint: id, Status: noVote})
	r.seats.add(e, seat{checker: c, place: uint32(len(k.votes) - 1), status: noVote})
	return int(e.count) - 1
}

// remove removes seat i of an endpoint, with its vote.
func (r *roster) remove(e *endpoint, i int) {
	s := r.seats.block(e)[i]
	r.seats.remove(e, i)
	k := &r.checkers[s.checker]
	last := len(k.votes) - 1
	if int(s.place) != last {
		k.votes[s.place] = k.votes[last]
		r.seat(k.votes[last].Endpoint, s.checker).place = s.place
	}
	k.votes = k.votes[:last]
}

// swap exchanges two votes in a checker's list.
func (r *roster) swap(c, i, j uint32) {
	if i == j {
		return
	}
	votes := r.checkers[c].votes
	votes[i], votes[j] = votes[j], votes[i]
	r.seat(votes[i].Endpoint, c).place, r.seat(votes[j].Endpoint, c).place = i, j
}
