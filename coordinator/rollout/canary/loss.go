package canary

import (
	"time"

	"hdsd/health"
)

// left is a trial that ended without a result. A checker that is lost soon
// after may have died of it all the same.
type left struct {
	cluster *cluster
	at      time.Time
}

func (c *checker) remember(now time.Time, k *cluster) {
	c.left = append(c.left, left{k, now})
	c.left = c.left[max(0, len(c.left)-maxTrials):]
}

// Connected says that a checker began a stream. Where it had one, that counts
// as lost: its process may have ended.
func (l *Ledger) Connected(now time.Time, h *health.Checker) {
	l.Lost(now, h.ID)
	c := l.checkers[h.ID]
	if c == nil {
		c = &checker{id: h.ID, trials: map[string]*trial{}}
		l.checkers[h.ID] = c
	}
	c.build, c.connected, c.since, c.followed, c.deaf = BuildOf(h), true, now, false, false
	l.disturb(now, c)
}

// Lost says that a checker's stream is gone: it may have died of what it was
// the canary of.
func (l *Ledger) Lost(now time.Time, id string) {
	c := l.checkers[id]
	if c == nil || !c.connected {
		return
	}
	c.connected = false
	if c.lost = append(c.lost, now); len(c.lost) > flaps {
		c.lost = c.lost[1:]
	}
	for _, name := range l.Trials(id) {
		l.lose(now, c.trials[name])
	}
	for _, ended := range c.left {
		if k := ended.cluster; now.Sub(ended.at) <= notTakenAfter*l.options.Report && l.clusters[k.name] == k && len(k.losses) == 0 {
			l.blame(now, k, c)
		}
	}
	c.left = nil
	l.disturb(now, c)
}

// lose ends a trial whose checker was lost.
func (l *Ledger) lose(now time.Time, t *trial) {
	l.end(t)
	k, kind := t.cluster, Lost
	if len(k.losses) > 0 && !t.suspect {
		l.acquit(k) // of the loss elsewhere meanwhile: one of the two counts
	}
	l.blame(now, k, t.checker)
	if len(k.losses) > 1 {
		kind = Blocked
		l.blocked++
	}
	l.tell(kind, t)
}

// blame makes a cluster suspect, or more so.
func (l *Ledger) blame(now time.Time, k *cluster, c *checker) {
	if len(k.losses) == 0 {
		l.suspects++
	}
	k.losses = append(k.losses, Loss{c.id, now})
	k.blamed = k.unproven(c.build)
}

// Leave forgets a checker whose seat is given up, unless it is connected.
func (l *Ledger) Leave(id string) {
	if c := l.checkers[id]; c != nil && !c.connected {
		delete(l.checkers, id)
	}
}

// disturb notes that a checker came or went.
func (l *Ledger) disturb(now time.Time, c *checker) {
	if l.unsteady(now, c) {
		l.wake(l.steadyAt(c))
	} else {
		l.unrest = now
	}
	if l.suspects > 0 {
		l.wake(now.Add(l.options.Calm))
	}
}

// unsteady tells whether a checker is lost again and again.
func (l *Ledger) unsteady(now time.Time, c *checker) bool { return now.Before(l.steadyAt(c)) }

// steadyAt is when a checker is no longer unsteady if it stays.
func (l *Ledger) steadyAt(c *checker) time.Time {
	window := flapWindow * l.options.Calm
	if len(c.lost) < flaps || c.lost[flaps-1].Sub(c.lost[0]) >= window {
		return time.Time{}
	}
	return c.lost[0].Add(window)
}
