package aggregate

import (
	"math/bits"

	"hdsd/health"
)

// seat is one checker's place at one endpoint, with its latest vote. The comment
// of a field names the type that writes it.
type seat struct {
	checker uint32
	place   uint32        // roster: in the checker's list of votes
	end     uint32        // intake: low bits of the tick at which the phase ends or the run began; blindness: of the tick at which a missed outage counts
	code    uint16        // intake: latest HTTP status code; 0 if there is none
	began   uint16        // intake: HTTP status code at the start of the present status
	status  health.Status // intake: the status that its vote counts as
	phase   phase         // intake
	adds    contribution  // records
	outage  outage        // blindness
}

// noVote is the status of a seat whose checker has not voted. It also marks a vote
// that counts as news even if it is repeated.
const noVote = ^health.Status(0)

// firstError is the lowest HTTP status code that means an error.
const firstError = 400

// failsNow reports whether the checker's latest probe failed although its vote is
// still up: most likely it says down soon.
func (s *seat) failsNow() bool {
	return s.status == health.Healthy && s.code != s.began && (s.code == 0 || s.code >= firstError)
}

// seats holds the seats of all endpoints in one array, with one block for each
// endpoint. A block has room for 3, 6, 12 … seats, and is as small as possible. So
// endpoints with the usual three checkers waste no memory.
type seats struct {
	list []seat
	free [][]uint32 // starts of unused blocks, by size
}

func sizeOf(count uint8) int { return bits.Len8((count - 1) / 3) }

// block returns the endpoint's seats. They are valid until the next add or remove.
func (s *seats) block(e *endpoint) []seat {
	return s.list[e.start : e.start+uint32(e.count)]
}

// find returns the index of the checker's seat, or -1.
func (s *seats) find(e *endpoint, checker uint32) int {
	for i, x := range s.block(e) {
		if x.checker == checker {
			return i
		}
	}
	return -1
}

func (s *seats) add(e *endpoint, x seat) {
	if e.count == 0 {
		e.start = s.allocate(0)
	} else {
		s.resize(e, sizeOf(e.count), sizeOf(e.count+1))
	}
	s.list[e.start+uint32(e.count)] = x
	e.count++
}

// remove moves the last seat to the place of seat i.
func (s *seats) remove(e *endpoint, i int) {
	list := s.block(e)
	list[i] = list[len(list)-1]
	size := sizeOf(e.count)
	e.count--
	if e.count == 0 {
		s.release(size, e.start)
	} else {
		s.resize(e, size, sizeOf(e.count))
	}
}

// resize moves the endpoint's seats into a block of another size.
func (s *seats) resize(e *endpoint, from, to int) {
	if from == to {
		return
	}
	start := s.allocate(to)
	copy(s.list[start:], s.block(e))
	s.release(from, e.start)
	e.start = start
}

func (s *seats) allocate(size int) uint32 {
	if size < len(s.free) {
		if n := len(s.free[size]); n > 0 {
			start := s.free[size][n-1]
			s.free[size] = s.free[size][:n-1]
			return start
		}
	}
	start := uint32(len(s.list))
	s.list = append(s.list, make([]seat, 3<<size)...)
	return start
}

func (s *seats) release(size int, start uint32) {
	for size >= len(s.free) {
		s.free = append(s.free, nil)
	}
	s.free[size] = append(s.free[size], start)
}
