package canary

import (
	"cmp"
	"slices"
	"time"
)

// Back-off of a version that was not taken.
const (
	firstRetry = 30 * time.Second
	lastRetry  = 10 * time.Minute
)

// backoff is none at first: what did not take the cluster may have had another
// reason, among all that it tried.
func (k *cluster) backoff() time.Duration {
	if k.refused < 2 {
		return 0
	}
	return min(firstRetry<<min(k.refused-2, 10), lastRetry)
}

// again is when the checker that refused a cluster may try it again, if another
// has not.
func (k *cluster) again() time.Time { return k.retry.Add(max(k.backoff(), firstRetry)) }

// notTaken ends a trial that is not followed. That says nothing of the cluster
// where the checker follows nothing at all.
func (l *Ledger) notTaken(now time.Time, t *trial) {
	k, c := t.cluster, t.checker
	if !c.followed {
		c.deaf = true
	} else {
		k.refused++
		k.refusedBy, k.retry = c.id, now.Add(k.backoff())
		l.wake(k.retry)
		l.wake(k.again())
	}
	l.end(t)
	c.remember(now, k)
	// What came along was not taken either, and is sent anew.
	for _, other := range c.trials {
		if other.followed.IsZero() {
			other.serial = 0
		}
	}
	l.tell(NotTaken, t)
}

// Tick does what is due. It tells whether something was: what was denied may
// be granted now.
func (l *Ledger) Tick(now time.Time) bool {
	if l.next.IsZero() || now.Before(l.next) {
		return false
	}
	var late []*trial
	for _, c := range l.checkers {
		for _, t := range c.trials {
			if t.followed.IsZero() && !now.Before(l.deadline(t)) {
				late = append(late, t)
			}
		}
	}
	slices.SortFunc(late, func(a, b *trial) int { return cmp.Compare(a.cluster.name, b.cluster.name) })
	for _, t := range late {
		l.notTaken(now, t)
	}
	l.plan(now)
	return true
}

// NextDeadline says when Tick has something to do if nothing else happens.
func (l *Ledger) NextDeadline() (time.Time, bool) { return l.next, !l.next.IsZero() }

// wake has something due at a time.
func (l *Ledger) wake(at time.Time) {
	if l.next.IsZero() || at.Before(l.next) {
		l.next = at
	}
}

// plan finds out what is due next after now.
func (l *Ledger) plan(now time.Time) {
	l.next = time.Time{}
	later := func(at time.Time) {
		if at.After(now) {
			l.wake(at)
		}
	}
	for _, c := range l.checkers {
		for _, t := range c.trials {
			if t.followed.IsZero() {
				later(l.deadline(t))
			}
		}
		later(l.steadyAt(c))
		if l.suspects > 0 {
			later(c.since.Add(l.options.Calm))
		}
	}
	if l.suspects > 0 {
		later(l.unrest.Add(l.options.Calm))
	}
	for _, k := range l.clusters {
		if k.refused > 0 {
			later(k.retry)
			later(k.again())
		}
	}
}
