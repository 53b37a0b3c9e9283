package machine

import (
	"maps"
	"time"

	"hdsd/aggregate"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/log"
)

const (
	// LostExpiry is the time after which hdsd forgets a lost checker.
	LostExpiry = 24 * time.Hour

	// maxLost limits the lost checkers.
	maxLost = 10_000
)

// Troubles holds the lost, doubted and blind checkers by id, and the time at which each trouble began.
type Troubles struct {
	doubted, blind map[string]time.Time

	connected map[string]health.Checker
	Lost      map[string]LostChecker
	earlier   earlierLosses
}

// earlierLosses counts the checkers that were lost before a restart. A checker that connects, and was not
// present before the restart, returns or replaces one of them.
type earlierLosses struct {
	count   int
	last    time.Time       // time of the latest loss
	present map[string]bool // ids of the checkers that were connected before the restart or have connected since
}

// LostChecker is a lost checker.
type LostChecker struct {
	health.Checker
	Since      time.Time
	LastReport time.Time // zero: unknown
}

func newTroubles() Troubles {
	return Troubles{
		doubted: map[string]time.Time{}, blind: map[string]time.Time{}, connected: map[string]health.Checker{}, Lost: map[string]LostChecker{},
	}
}

// restore takes over the connected and lost checkers from before a restart. It leaves out checkers on probation.
func (t *Troubles) restore(s *log.State) {
	for id, last := range s.Attendance {
		k := health.Checker{ID: id, Locality: last.Locality}
		_, established := s.Established[id]
		switch {
		case last.Lost.IsZero():
			t.connected[id] = k
		case (established || len(s.Established) == 0) && len(t.Lost) < maxLost:
			t.Lost[id] = LostChecker{Checker: k, Since: last.Lost}
		}
	}
}

// begin counts the lost checkers at the start.
func (t *Troubles) begin(now time.Time) {
	t.Expire(now)
	t.earlier = earlierLosses{count: len(t.Lost), present: map[string]bool{}}
	for id := range t.connected {
		t.earlier.present[id] = true
	}
	for _, k := range t.Lost {
		if k.Since.After(t.earlier.last) {
			t.earlier.last = k.Since
		}
	}
}

// fill adds a checker whose votes count. It reports whether the checker takes the place of a checker that
// was lost before.
func (l *earlierLosses) fill(id string) bool {
	if l.count == 0 || l.present[id] {
		return false
	}
	l.present[id] = true
	l.count--
	return true
}

// applyEvents adds the checkers that the fleet reports as lost, and those whose seats it gives up because
// they did not return after a restart.
func (t *Troubles) applyEvents(now time.Time, events []fleet.Event) {
	for i := range events {
		e := &events[i]
		if e.Kind != fleet.Lost && e.Kind != fleet.SeatsGivenUp {
			continue
		}
		for _, id := range e.Checkers {
			_, known := t.Lost[id]
			if (!known || e.Kind == fleet.Lost) && len(t.Lost) < maxLost {
				t.Lost[id] = LostChecker{t.connected[id], now, e.LastReport}
			}
		}
	}
}

// connect adds a connected checker.
func (t *Troubles) connect(k health.Checker) {
	delete(t.Lost, k.ID)
	t.connected[k.ID] = k
}

// disconnect removes a checker from the connected ones.
func (t *Troubles) disconnect(id string) { delete(t.connected, id) }

// applyFindings sets the doubted and blind checkers.
func (t *Troubles) applyFindings(now time.Time, e *aggregate.Effects) {
	for i := range e.Doubts {
		if d := &e.Doubts[i]; d.Checker != "" {
			setSince(t.doubted, d.Checker, d.Doubted, now)
		}
	}
	for i := range e.Blindness {
		setSince(t.blind, e.Blindness[i].Checker, e.Blindness[i].Blind, now)
	}
}

// setSince sets the beginning of a trouble, or removes it when the trouble ends.
func setSince(beginnings map[string]time.Time, id string, active bool, now time.Time) {
	if active {
		beginnings[id] = now
	} else {
		delete(beginnings, id)
	}
}

// Expire forgets the checkers that were lost LostExpiry ago.
func (t *Troubles) Expire(now time.Time) {
	maps.DeleteFunc(t.Lost, func(_ string, k LostChecker) bool { return now.Sub(k.Since) >= LostExpiry })
}

// TroubledSince returns the time since which a checker is doubted or blind; zero if it is neither.
func (t *Troubles) TroubledSince(id string) time.Time {
	doubted, isDoubted := t.doubted[id]
	blind, isBlind := t.blind[id]
	if isDoubted && (!isBlind || doubted.Before(blind)) {
		return doubted
	}
	return blind
}
