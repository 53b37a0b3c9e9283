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

// longUnrest is the number of calm times for which a suspect waits for calm at most.
const longUnrest = 10

// roster is the present checkers, and how they come and go.
type roster struct {
	calm     time.Duration        // time without arrivals and losses before a suspect is tried
	history  func(id string) bool // reports whether a checker is established
	checkers map[string]*checker
	unrest   time.Time // when a steady checker last came or went
}

// checker is a checker that is or was connected.
type checker struct {
	id            string
	identity      string // verified, or else the id: its losses count as one
	build         Build
	connected     bool
	connectedAt   time.Time // time of its last connection
	accepted      bool      // accepted a specifier since it connected
	deaf          bool      // accepted no trial, and nothing else since it connected
	silent        bool      // stopped reporting
	trials        map[string]*trial
	ended         []endedTrial // latest trials without a result
	reserved      *version     // to be tried alone after the others
	reservedUntil time.Time    // end of that reservation
	lost          []time.Time  // latest losses, at most flaps
}

// endedTrial is a trial that ended without a result. It may still be the cause of a loss soon
// after.
type endedTrial struct {
	shapes  []*shape
	time    time.Time
	silent  bool // it ended after the checker fell silent, and no report came since
	suspect bool // whether the trial was one of a suspect
}

// connect notes that a checker begins a stream.
func (r *roster) connect(now time.Time, h *health.Checker) *checker {
	c := r.checkers[h.ID]
	if c == nil {
		c = &checker{id: h.ID, trials: map[string]*trial{}}
		r.checkers[h.ID] = c
	}
	c.build, c.connected, c.connectedAt, c.accepted, c.deaf, c.silent = BuildOf(h), true, now, false, false, false
	c.identity = cmp.Or(h.Identity, h.ID)
	return c
}

// fit reports whether the loss of a checker would be new evidence about a version: it is
// established, and no checker of its identity was lost to the version.
func (r *roster) fit(c *checker, v *version) bool {
	return r.history(c.id) && !v.lostBy(c.identity)
}

// better reports whether a fit checker could be the canary in place of c. A checker that could
// but never asks is awaited until the cluster's patience ends.
func (r *roster) better(now, deadline time.Time, c *checker, v *version) bool {
	for _, other := range r.checkers {
		_, ok := v.wanted[other.id]
		if (ok || now.Before(deadline)) && other != c && other.listens() && v.refusedBy != other.id &&
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

// safe reports whether a restart of the fleet that may have cost a checker is unlikely to reach
// this one: it is over or, if checkers come and go all the time, this one has connected since.
func (r *roster) safe(now time.Time, c *checker, loss time.Time) bool {
	if now.Sub(r.unrest) >= r.calm {
		return true
	}
	return now.Sub(loss) >= longUnrest*r.calm && c.connectedAt.After(loss) && now.Sub(c.connectedAt) >= r.calm
}

// listens reports whether a checker may try something, judging by its reports.
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

// noteLoss records the time of a loss.
func (c *checker) noteLoss(now time.Time) {
	c.connected = false
	if c.lost = append(c.lost, now); len(c.lost) > flaps {
		c.lost = c.lost[1:]
	}
}

// noteEnded notes that a trial ended without a result.
func (c *checker) noteEnded(now time.Time, shapes []*shape) {
	c.ended = append(c.ended, endedTrial{shapes: shapes, time: now})
	c.ended = c.ended[max(0, len(c.ended)-maxTrials):]
}

// triesAlone reports whether a checker has a trial that must be its only one.
func (c *checker) triesAlone() bool {
	for _, t := range c.trials {
		return t.alone
	}
	return false
}
