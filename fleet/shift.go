package fleet

import (
	"slices"
	"time"
)

// leastPeriod is the shortest time in which a margin may move, even if the grace period is
// shorter.
const leastPeriod = 5 * time.Second

// leastShift is the number of endpoints that may move in a period, even in a small fleet: they
// overload no checker.
const leastShift = 100

// shift bounds moves: in no stretch of time as long as a period may more than a margin move. A
// larger amount moves as one, after it has waited for as many periods as it needs. The longest
// waiting amount is not delayed by others: otherwise checkers that come and go could delay it
// for ever.
type shift struct {
	period  time.Duration
	moves   []moved // latest last
	planned int     // amount allowed since the last settle
	first   turn    // the first in the queue
}

// turn is an amount that waits to move.
type turn struct {
	start, deadline time.Time // deadline: when the wait is taken to be over, unless it asks again
	amount, periods int
}

// moved is an amount that moved, with its time.
type moved struct {
	time   time.Time
	amount int
}

func newShift(grace time.Duration) shift { return shift{period: max(grace, leastPeriod)} }

// allows reports whether an amount that has waited for a time may move now, and counts it if
// so. A refused amount asks again within a period. Turns are ordered by start: a checker that
// comes and goes is behind all that did not return.
func (s *shift) allows(now, start time.Time, waited time.Duration, amount, margin int) bool {
	if amount <= 0 {
		return true
	}
	margin = max(margin, 1)
	periods, first := (amount+margin-1)/margin, s.first
	contested := now.Before(first.deadline) && first.start.Before(start)
	switch {
	case waited < time.Duration(periods-1)*s.period || s.within(now, periods)+amount > periods*margin:
		if !contested {
			s.first = turn{start, now.Add(2 * s.period), amount, periods}
		}
		return false
	case contested && s.within(now, first.periods)+first.amount+amount > first.periods*margin:
		return false
	case !contested:
		s.first = turn{}
	}
	s.planned += amount
	return true
}

// within returns the amount that moved in the last periods, or is about to.
func (s *shift) within(now time.Time, periods int) int {
	sum := s.planned
	for _, m := range slices.Backward(s.moves) {
		if now.Sub(m.time) >= time.Duration(periods)*s.period {
			break
		}
		sum += m.amount
	}
	return sum
}

// longestMemory is the number of periods for which moves count.
const longestMemory = 40

// settle records the part of the allowed amount that really moved.
func (s *shift) settle(now time.Time, amount int) {
	if amount = min(amount, s.planned); amount > 0 {
		s.moves = append(s.moves, moved{now, amount})
	}
	s.planned = 0
	s.moves = slices.DeleteFunc(s.moves, func(m moved) bool { return now.Sub(m.time) >= longestMemory*s.period })
}
