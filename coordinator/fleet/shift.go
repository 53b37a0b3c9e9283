package fleet

import (
	"slices"
	"time"
)

// leastPeriod is the shortest time in which as much may move as in a grace period, however
// short that is.
const leastPeriod = 5 * time.Second

// leastShift is how many endpoints may move in a period, however small the fleet is: they
// overload nobody.
const leastShift = 100

// shift bounds how much moves: in no stretch of time as long as a period, wherever it
// begins, does more move than a margin. What is more than that by itself moves as one,
// when it has waited for as many periods as it needs.
type shift struct {
	period  time.Duration
	moves   []moved // the latest last
	planned int     // what allows has let through since the last settle
}

// moved is what has moved at a time.
type moved struct {
	at     time.Time
	amount int
}

func newShift(grace time.Duration) shift { return shift{period: max(grace, leastPeriod)} }

// allows reports whether so much may move now that has waited since a time, and counts it
// if so.
func (s *shift) allows(now, since time.Time, amount, margin int) bool {
	if amount <= 0 {
		return true
	}
	periods := 1
	if margin = max(margin, 1); amount > margin {
		periods = (amount + margin - 1) / margin
		if now.Sub(since) < time.Duration(periods-1)*s.period {
			return false
		}
	}
	if s.within(now, periods)+amount > periods*margin {
		return false
	}
	s.planned += amount
	return true
}

// within returns how much has moved in the last periods, or is about to.
func (s *shift) within(now time.Time, periods int) int {
	sum := s.planned
	for _, m := range slices.Backward(s.moves) {
		if now.Sub(m.at) >= time.Duration(periods)*s.period {
			break
		}
		sum += m.amount
	}
	return sum
}

// longestMemory is how many periods back moves count.
const longestMemory = 40

// settle notes how much of what was let through has moved indeed.
func (s *shift) settle(now time.Time, amount int) {
	if amount = min(amount, s.planned); amount > 0 {
		s.moves = append(s.moves, moved{now, amount})
	}
	s.planned = 0
	s.moves = slices.DeleteFunc(s.moves, func(m moved) bool { return now.Sub(m.at) >= longestMemory*s.period })
}
