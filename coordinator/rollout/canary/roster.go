package canary

import (
	"cmp"
	"time"

	"hdsd/health"
)

// A checker that was lost flaps times within a number of calm times is unsteady.
const (
	flaps      = 3
	flapWindow = 6
)

// longUnrest is for how many calm times a suspect waits for calm in any case.
const longUnrest = 10

// roster is the checkers, and whether they come and go.
type roster struct {
	calm     time.Duration        // for which no checker must come or go before a suspect is tried
	history  func(id string) bool // whether a checker is established
	checkers map[string]*checker
	unrest   time.Time // when a steady checker last came or went
}

// checker is one that is or was connected.
type checker struct {
	id        string
	identity  string // verified, or else the id: what may count as one loss only
	build     Build
	connected bool
	since     time.Time // when it last connected
	accepted  bool      // a specifier, since it connected
	deaf      bool      // it accepted no trial, and nothing else since it connected
	silent    bool      // it has stopped reporting
	trials    map[string]*trial
	ended     []endedTrial // without a result, the latest
	reserved  *version     // to be tried alone as soon as the others are through
	until     time.Time    // when that is given up
	lost      []time.Time  // the latest, at most flaps
}

// endedTrial is a trial that ended without a result. A checker that is lost soon after
// may have died of it all the same.
type endedTrial struct {
	shapes  []*shape
	at      time.Time
	silent  bool // it ended since the checker fell silent, and has not reported yet
	suspect bool // as of the trial
}

// connect notes that a checker begins a stream.
func (r *roster) connect(now time.Time, h *health.Checker) *checker {
	c := r.checkers[h.ID]
	if c == nil {
		c = &checker{id: h.ID, trials: map[string]*trial{}}
		r.checkers[h.ID] = c
	}
	c.build, c.connected, c.since, c.accepted, c.deaf, c.silent = BuildOf(h), true, now, false, false, false
	c.identity = cmp.Or(h.Identity, h.ID)
	return c
}

// fit reports whether the loss of a checker would say something new of a version: it is
// established, and nobody of its identity was lost to the version.
func (r *roster) fit(c *checker, v *version) bool {
	return r.history(c.id) && !v.lostBy(c.identity)
}

// better reports whether a fit checker could be the canary in place of c. One that could
// but never asks is waited for until the cluster's patience ends.
func (r *roster) better(now, until time.Time, c *checker, v *version) bool {
	for _, other := range r.checkers {
		_, asked := v.wanted[other.id]
		if (asked || now.Before(until)) && other != c && other.listens() && v.refusedBy != other.id &&
			r.fit(other, v) && !v.provenFor(other.build) && !r.unsteady(now, other) {
			return true
		}
	}
	return false
}

// someEstablished reports whether an established checker other than c is connected.
func (r *roster) someEstablished(c *checker) bool {
	for _, other := range r.checkers {
		if other != c && other.connected && r.history(other.id) {
			return true
		}
	}
	return false
}

// disturb notes that a checker came or went. A newcomer does not disturb established ones.
func (r *roster) disturb(now time.Time, c *checker) {
	if !r.unsteady(now, c) && (r.history(c.id) || !r.someEstablished(c)) {
		r.unrest = now
	}
}

// unsteady reports whether a checker is lost again and again.
func (r *roster) unsteady(now time.Time, c *checker) bool { return now.Before(r.steadyAt(c)) }

// steadyAt returns when a checker is no longer unsteady if it stays.
func (r *roster) steadyAt(c *checker) time.Time {
	window := flapWindow * r.calm
	if len(c.lost) < flaps || c.lost[flaps-1].Sub(c.lost[0]) >= window {
		return time.Time{}
	}
	return c.lost[0].Add(window)
}

// safe reports whether a restart of the fleet that may have cost a checker is unlikely
// to reach this one: because it is over or, where checkers come and go all the time,
// because this one has come since.
func (r *roster) safe(now time.Time, c *checker, loss time.Time) bool {
	if now.Sub(r.unrest) >= r.calm {
		return true
	}
	return now.Sub(loss) >= longUnrest*r.calm && c.since.After(loss) && now.Sub(c.since) >= r.calm
}

// listens reports whether a checker may try something, for all that it says.
func (c *checker) listens() bool { return c.connected && !c.deaf && !c.silent }

// othersListen reports whether another checker could try something.
func (r *roster) othersListen(c *checker) bool {
	for _, other := range r.checkers {
		if other != c && other.listens() {
			return true
		}
	}
	return false
}

// noteLoss notes when a checker was lost.
func (c *checker) noteLoss(now time.Time) {
	c.connected = false
	if c.lost = append(c.lost, now); len(c.lost) > flaps {
		c.lost = c.lost[1:]
	}
}

// noteEnded notes that a trial ended without a result.
func (c *checker) noteEnded(now time.Time, shapes []*shape) {
	c.ended = append(c.ended, endedTrial{shapes: shapes, at: now})
	c.ended = c.ended[max(0, len(c.ended)-maxTrials):]
}

// triesAlone reports whether a checker has a trial that must be its only one.
func (c *checker) triesAlone() bool {
	for _, t := range c.trials {
		return t.alone
	}
	return false
}
