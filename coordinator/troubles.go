package coordinator

import (
	"maps"
	"time"

	"hdsd/aggregate"
	"hdsd/coordinator/fleet"
	"hdsd/health"
)

const (
	// lostFor is how long a checker counts as lost that does not come back.
	lostFor = 24 * time.Hour

	// mostLost is how many lost checkers are known.
	mostLost = 10_000
)

// troubles knows since when checkers are lost, doubted or blind, by their ids.
type troubles struct {
	doubted, blind map[string]time.Time

	present map[string]health.Checker // those that are connected
	lost    map[string]lostChecker
}

// lostChecker is one that was lost.
type lostChecker struct {
	health.Checker
	at         time.Time
	lastReport time.Time // zero: none is known
}

func newTroubles() troubles {
	return troubles{
		doubted: map[string]time.Time{}, blind: map[string]time.Time{}, present: map[string]health.Checker{}, lost: map[string]lostChecker{},
	}
}

// follow takes note of what the fleet says.
func (t *troubles) follow(now time.Time, events []fleet.Event) {
	for i := range events {
		if e := &events[i]; e.Kind == fleet.Lost && len(t.lost) < mostLost {
			t.lost[e.Checkers[0]] = lostChecker{t.present[e.Checkers[0]], now, e.LastReport}
		}
	}
}

// back takes note that a checker is connected.
func (t *troubles) back(k health.Checker) {
	delete(t.lost, k.ID)
	t.present[k.ID] = k
}

// gone takes note that a checker is not connected.
func (t *troubles) gone(id string) { delete(t.present, id) }

// judged takes note of who is believed.
func (t *troubles) judged(now time.Time, e *aggregate.Effects) {
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

// expire forgets who has been lost for long.
func (t *troubles) expire(now time.Time) {
	maps.DeleteFunc(t.lost, func(_ string, k lostChecker) bool { return now.Sub(k.at) >= lostFor })
}

// since returns since when a checker is doubted or blind, whichever began first.
func (t *troubles) since(id string) time.Time {
	doubted, isDoubted := t.doubted[id]
	blind, isBlind := t.blind[id]
	if isDoubted && (!isBlind || doubted.Before(blind)) {
		return doubted
	}
	return blind
}
