package canary

import (
	"cmp"
	"slices"
	"time"
)

// Tick applies what is due. If it returns true, a Try that was denied may now
// succeed.
func (l *Ledger) Tick(now time.Time) bool {
	if l.next.IsZero() || now.Before(l.next) {
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

// refuse ends a trial that was not accepted. It does not blame the cluster if the
// checker accepts nothing at all.
func (l *Ledger) refuse(now time.Time, t *trial) {
	k, c := t.cluster, t.checker
	if !c.accepted {
		c.deaf = true
	} else {
		v := k.version
		v.refuse(now, c)
		l.schedule(v.retry)
		l.schedule(v.again())
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

// NextDeadline returns when Tick has work if nothing else happens.
func (l *Ledger) NextDeadline() (time.Time, bool) { return l.next, !l.next.IsZero() }

// schedule makes Tick due at a time, at the latest.
func (l *Ledger) schedule(at time.Time) {
	if l.next.IsZero() || at.Before(l.next) {
		l.next = at
	}
}

// reschedule computes the next deadline after now.
func (l *Ledger) reschedule(now time.Time) {
	l.next = time.Time{}
	later := func(at time.Time) {
		if at.After(now) {
			l.schedule(at)
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
			later(c.since.Add(l.options.Calm))
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
			later(v.again())
		}
		if !v.asked.IsZero() {
			later(v.asked.Add(patience * l.options.Report))
		}
		later(v.parts)
	}
}
