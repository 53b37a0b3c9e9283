package canary

import (
	"cmp"
	"slices"
	"time"
)

// Tick applies the due changes. If it returns true, a denied Try may now succeed.
func (l *Ledger) Tick(now time.Time) bool {
	if l.deadline.IsZero() || now.Before(l.deadline) {
		return false
	}
	var late []*trial
	for _, c := range l.roster.checkers {
		for _, t := range c.trials {
			if t.accepted.IsZero() && !now.Before(t.acceptBy(l.options.Report)) {
				late = append(late, t)
			}
		}
	}
	slices.SortFunc(late, func(a, b *trial) int { return cmp.Compare(a.cluster.name, b.cluster.name) })
	for _, t := range late {
		l.refuse(now, t)
	}
	l.reschedule(now)
	return true
}

// refuse ends a trial that was not accepted. It does not blame the cluster if the checker
// accepts nothing at all.
func (l *Ledger) refuse(now time.Time, t *trial) {
	k, c := t.cluster, t.checker
	if !c.accepted {
		c.deaf = true
	} else {
		v := k.version
		v.refuse(now, c)
		l.schedule(v.retry)
		l.schedule(v.retryAt())
	}
	l.end(t)
	c.noteEnded(now, t.tried)
	// The rest of the specifier was not accepted either, and is sent anew.
	for _, other := range c.trials {
		if other.accepted.IsZero() {
			other.serial = 0
		}
	}
	l.events.note(NotAccepted, t)
}

// NextDeadline returns the next time at which Tick has work if nothing else happens.
func (l *Ledger) NextDeadline() (time.Time, bool) { return l.deadline, !l.deadline.IsZero() }

// schedule makes Tick due at a time, at the latest.
func (l *Ledger) schedule(t time.Time) {
	if l.deadline.IsZero() || t.Before(l.deadline) {
		l.deadline = t
	}
}

// reschedule computes the next deadline after now.
func (l *Ledger) reschedule(now time.Time) {
	l.deadline = time.Time{}
	later := func(t time.Time) {
		if t.After(now) {
			l.schedule(t)
		}
	}
	for _, c := range l.roster.checkers {
		for _, t := range c.trials {
			if t.accepted.IsZero() {
				later(t.acceptBy(l.options.Report))
			}
		}
		later(l.roster.steadyAt(c))
		if len(l.shapes.charges) > 0 {
			later(c.connectedAt.Add(l.options.Calm))
		}
	}
	if len(l.shapes.charges) > 0 {
		later(l.roster.unrest.Add(l.options.Calm))
	}
	for _, c := range l.shapes.charges {
		if len(c.losses) > 1 {
			later(c.blockedUntil(now))
		}
	}
	for _, v := range l.shapes.versions {
		if v.refused > 0 {
			later(v.retry)
			later(v.retryAt())
		}
		if !v.askedAt.IsZero() {
			later(v.askedAt.Add(patience * l.options.Report))
		}
		later(v.parts)
	}
}
