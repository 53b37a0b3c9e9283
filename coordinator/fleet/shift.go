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
// when it has waited for as many periods as it needs. Whoever has waited longest is not
// delayed by others, or those that come and go could take its turn for ever.
type shift struct {
	period  time.Duration
	moves   []moved // the latest last
	planned int     // what allows has let through since the last settle
	first   turn    // of those that wait
}

// turn is what waits to move.
type turn struct {
	since, until    time.Time // until: when it is taken to wait no longer, if it has not asked again
	amount, periods int
}

// moved is what has moved at a time.
type moved struct {
	at     time.Time
	amount int
}

func newShift(grace time.Duration) shift { return shift{period: max(grace, leastPeriod)} }

// allows reports whether so much may move now that has waited for a time, and counts it
// if so. What may not asks again within a period. Its turn comes by since: that of a checker that
// comes and goes is behind all that did not come back.
func (s *shift) allows(now, since time.Time, waited time.Duration, amount, margin int) bool {
	if amount <= 0 {
		return true
	}
	margin = max(margin, 1)
	periods, first := (amount+margin-1)/margin, s.first
	others := now.Before(first.until) && first.since.Before(since)
	switch {
	case waited < time.Duration(periods-1)*s.period || s.within(now, periods)+amount > periods*margin:
		if !others {
			s.first = turn{since, now.Add(2 * s.period), amount, periods}
		}
		return false
	case others && s.within(now, first.periods)+first.amount+amount > first.periods*margin:
		return false
	case !others:
		s.first = turn{}
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
