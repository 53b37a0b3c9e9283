package canary

import (
	"time"
)

// maxTrials bounds how many clusters a checker tries at once, and with that
// how many are suspect when it is lost.
const maxTrials = 256

// A checker that was lost flaps times within a number of calm times is
// unsteady.
const (
	flaps      = 3
	flapWindow = 6
)

// checker is what is kept of one that is or was connected.
type checker struct {
	id        string
	build     Build
	connected bool
	since     time.Time // when it connected last
	followed  bool      // a specifier, since it connected
	deaf      bool      // it took no trial, and nothing else since it connected
	trials    map[string]*trial
	left      []left      // trials that ended there without a result, the latest
	reserved  *cluster    // is to be tried alone as soon as the others are through
	until     time.Time   // when that is given up
	lost      []time.Time // the latest, at most flaps
}

// Try tells whether a checker is the canary of a cluster, which it becomes now
// where that is possible. Had says that it was sent the cluster before, as
// something else.
func (l *Ledger) Try(now time.Time, id, name string, had bool) bool {
	c, k := l.checkers[id], l.clusters[name]
	if c == nil || !c.connected || k == nil {
		return false
	}
	if k.trial != nil {
		return k.trial.checker == c
	}
	if k.provenFor(c.build) || !l.may(now, c, k) {
		return false
	}
	l.start(now, c, k, had)
	return true
}

// may tells whether a checker may try a cluster now.
func (l *Ledger) may(now time.Time, c *checker, k *cluster) bool {
	switch {
	case len(k.losses) > 1 || now.Before(k.retry) || c.deaf || l.unsteady(now, c) || c.triesAlone():
		return false
	case k.refusedBy == c.id && now.Before(k.again()) && l.others(c):
		return false
	case c.reserved != nil && c.reserved != k && now.Before(c.until) && l.waits(c.reserved):
		return false
	case !k.alone():
		return len(c.trials) < maxTrials
	case len(k.losses) > 0 && !l.safeFrom(now, c, k.losses[0].Time):
		return false
	}
	if len(c.trials) > 0 {
		c.reserved, c.until = k, now.Add(notTakenAfter*l.options.Report+longestWait)
		l.wake(c.until)
		return false
	}
	return true
}

// others tells whether there are checkers besides one that could try something.
func (l *Ledger) others(c *checker) bool {
	for _, other := range l.checkers {
		if other != c && other.connected && !other.deaf {
			return true
		}
	}
	return false
}

// alone tells whether a cluster is to be tried alone.
func (k *cluster) alone() bool { return len(k.losses) > 0 || k.refused > 0 }

// waits tells whether a cluster that a checker is reserved for still wants to
// be tried.
func (l *Ledger) waits(k *cluster) bool {
	return l.clusters[k.name] == k && k.trial == nil && k.alone() && len(k.losses) < 2
}

// triesAlone tells whether a checker has a trial that is to be its only one.
func (c *checker) triesAlone() bool {
	for _, t := range c.trials {
		return t.alone
	}
	return false
}

// longUnrest is for how many calm times a suspect waits for calm in any case.
const longUnrest = 10

// safeFrom tells whether the restart that may have cost a checker is unlikely
// to reach this one: because it is over or, where checkers come and go all the
// time, because this one has come since.
func (l *Ledger) safeFrom(now time.Time, c *checker, loss time.Time) bool {
	if now.Sub(l.unrest) >= l.options.Calm {
		return true
	}
	return now.Sub(loss) >= longUnrest*l.options.Calm && c.since.After(loss) && now.Sub(c.since) >= l.options.Calm
}
