package machine

import (
	"maps"
	"time"

	"hdsd/aggregate"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/store"
)

const (
	// LostFor is how long a checker counts as lost that does not come back.
	LostFor = 24 * time.Hour

	// mostLost is how many lost checkers are known.
	mostLost = 10_000
)

// Troubles knows since when checkers are lost, doubted or blind, by their ids.
type Troubles struct {
	doubted, blind map[string]time.Time

	present map[string]health.Checker // those that are connected
	Lost    map[string]LostChecker
	earlier earlierLosses
}

// earlierLosses counts the checkers that were lost before a restart. One that comes, and was not there
// then, takes the place of one: it is back, or replaces it.
type earlierLosses struct {
	count int
	last  time.Time
	there map[string]bool // ids of those that were not lost, and of those that came
}

// LostChecker is one that was lost.
type LostChecker struct {
	health.Checker
	Since      time.Time
	LastReport time.Time // zero: none is known
}

func newTroubles() Troubles {
	return Troubles{
		doubted: map[string]time.Time{}, blind: map[string]time.Time{}, present: map[string]health.Checker{}, Lost: map[string]LostChecker{},
	}
}

// restore takes up who was there before a restart, and who was lost. Who was on probation is not.
func (t *Troubles) restore(s *store.State) {
	for id, last := range s.Attendance {
		k := health.Checker{ID: id, Locality: last.Locality}
		_, established := s.Established[id]
		switch {
		case last.Lost.IsZero():
			t.present[id] = k
		case (established || len(s.Established) == 0) && len(t.Lost) < mostLost:
			t.Lost[id] = LostChecker{Checker: k, Since: last.Lost}
		}
	}
}

// begin counts those that are lost when hdsd starts.
func (t *Troubles) begin(now time.Time) {
	t.Expire(now)
	t.earlier = earlierLosses{count: len(t.Lost), there: map[string]bool{}}
	for id := range t.present {
		t.earlier.there[id] = true
	}
	for _, k := range t.Lost {
		if k.Since.After(t.earlier.last) {
			t.earlier.last = k.Since
		}
	}
}

// fill takes note of a checker whose votes count. It reports whether it takes the place of one that was
// lost before.
func (l *earlierLosses) fill(id string) bool {
	if l.count == 0 || l.there[id] {
		return false
	}
	l.there[id] = true
	l.count--
	return true
}

// follow takes note of what the fleet says. Seats are also given up of checkers that did not
// come back after a restart.
func (t *Troubles) follow(now time.Time, events []fleet.Event) {
	for i := range events {
		e := &events[i]
		if e.Kind != fleet.Lost && e.Kind != fleet.SeatsGivenUp {
			continue
		}
		for _, id := range e.Checkers {
			_, known := t.Lost[id]
			if (!known || e.Kind == fleet.Lost) && len(t.Lost) < mostLost {
				t.Lost[id] = LostChecker{t.present[id], now, e.LastReport}
			}
		}
	}
}

// back takes note that a checker is connected.
func (t *Troubles) back(k health.Checker) {
	delete(t.Lost, k.ID)
	t.present[k.ID] = k
}

// gone takes note that a checker is not connected.
func (t *Troubles) gone(id string) { delete(t.present, id) }

// judged takes note of who is believed.
func (t *Troubles) judged(now time.Time, e *aggregate.Effects) {
	for i := range e.Doubts {
		if d := &e.Doubts[i]; d.Checker != "" {
			begin(t.doubted, d.Checker, d.Doubted, now)
		}
	}
	for i := range e.Blindness {
		begin(t.blind, e.Blindness[i].Checker, e.Blindness[i].Blind, now)
	}
}

func begin(since map[string]time.Time, id string, is bool, now time.Time) {
	if is {
		since[id] = now
	} else {
		delete(since, id)
	}
}

// Expire forgets who has been lost for long.
func (t *Troubles) Expire(now time.Time) {
	maps.DeleteFunc(t.Lost, func(_ string, k LostChecker) bool { return now.Sub(k.Since) >= LostFor })
}

// Since returns since when a checker is doubted or blind, whichever began first.
func (t *Troubles) Since(id string) time.Time {
	doubted, isDoubted := t.doubted[id]
	blind, isBlind := t.blind[id]
	if isDoubted && (!isBlind || doubted.Before(blind)) {
		return doubted
	}
	return blind
}
