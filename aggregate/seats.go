package aggregate

import (
	"math/bits"

	"hdsd/health"
)

// seat is one checker's place at one endpoint, with its latest vote.
type seat struct {
	checker uint32
	place   uint32        // in the checker's list of votes
	until   uint32        // low bits of the tick that ends the phase; of a settled down, of the report it began with; of an up that misses an outage, of when that counts
	code    uint16        // latest HTTP status code; 0 where there was none
	began   uint16        // the code when it began to say what it says
	status  health.Status // what its vote counts as
	phase   phase
	adds    uint8 // to the records of its checker and its path
	outage  outage
}

// noVote is the status of a seat whose checker has not voted, and of a vote that
// is news even when it is repeated.
const noVote = ^health.Status(0)

// wavers tells whether the checker's latest probe failed, unlike those that made
// it say up: most likely it says down soon.
func (s *seat) wavers() bool {
	return s.status == health.Healthy && s.code != s.began && (s.code == 0 || s.code >= leastError)
}

// seats holds the seats of all endpoints in one array, those of one endpoint
// in one block. A block has room for 3, 6, 12 … seats, the least that is
// enough, so the usual three checkers an endpoint waste nothing.
type seats struct {
	all  []seat
	free [][]uint32 // by size of block, where unused ones start
}

func sizeOf(count uint8) int { return bits.Len8((count - 1) / 3) }

// of gives the endpoint's seats; good until the next add or drop.
func (s *seats) of(e *endpoint) []seat {
	return s.all[e.start : e.start+uint32(e.count)]
}

// find gives the index of the checker's seat, -1 where it has none.
func (s *seats) find(e *endpoint, checker uint32) int {
	for i, x := range s.of(e) {
		if x.checker == checker {
			return i
		}
	}
	return -1
}

func (s *seats) add(e *endpoint, x seat) {
	if e.count == 0 {
		e.start = s.take(0)
	} else {
		s.fit(e, sizeOf(e.count), sizeOf(e.count+1))
	}
	s.all[e.start+uint32(e.count)] = x
	e.count++
}

// drop puts the last seat in the place of seat i.
func (s *seats) drop(e *endpoint, i int) {
	list := s.of(e)
	list[i] = list[len(list)-1]
	size := sizeOf(e.count)
	e.count--
	if e.count == 0 {
		s.give(size, e.start)
	} else {
		s.fit(e, size, sizeOf(e.count))
	}
}

// fit moves the endpoint's seats into a block of another size.
func (s *seats) fit(e *endpoint, from, to int) {
	if from == to {
		return
	}
	start := s.take(to)
	copy(s.all[start:], s.of(e))
	s.give(from, e.start)
	e.start = start
}

func (s *seats) take(size int) uint32 {
	if size < len(s.free) {
		if n := len(s.free[size]); n > 0 {
			start := s.free[size][n-1]
			s.free[size] = s.free[size][:n-1]
			return start
		}
	}
	start := uint32(len(s.all))
	s.all = append(s.all, make([]seat, 3<<size)...)
	return start
}

func (s *seats) give(size int, start uint32) {
	for size >= len(s.free) {
		s.free = append(s.free, nil)
	}
	s.free[size] = append(s.free[size], start)
}
