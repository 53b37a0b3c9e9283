package canary

import (
	"hdsd/envoy/specifier"
	"slices"
	"time"
)

// Try reports whether a checker is the canary of a cluster, and makes it the canary if
// possible. had means that the checker got another version of the cluster before.
func (l *Ledger) Try(now time.Time, id, name string, had bool) bool {
	c, k := l.roster.checkers[id], l.clusters[name]
	if c == nil || !c.connected || k == nil {
		return false
	}
	if k.trial != nil {
		return k.trial.checker == c
	}
	v := k.version
	if v.provenFor(c.build) || v.busy(c.build) != nil || l.waitsForParts(now, c, v) {
		return false
	}
	fit := l.roster.fit(c, v)
	if !fit && !l.mayStandIn(now, c, v) {
		return false
	}
	if !l.mayTry(now, c, v) {
		if fit && !v.blocked() {
			v.want(c)
		}
		return false
	}
	l.start(now, c, k, had)
	return true
}

// waitsForParts reports whether a smaller version is to be tried first. If no checker tries
// that, the larger one does not wait for long.
func (l *Ledger) waitsForParts(now time.Time, c *checker, v *version) bool {
	if !v.hasSmaller(c.build) {
		return false
	}
	if v.parts.IsZero() {
		v.parts = now.Add(patience * l.options.Report)
		l.schedule(v.parts)
	}
	return now.Before(v.parts)
}

// mayStandIn reports whether a checker that is not fit may try a version, since no fit one can.
// No newcomer retries a blocked version.
func (l *Ledger) mayStandIn(now time.Time, c *checker, v *version) bool {
	if v.blocked() {
		return l.roster.history(c.id)
	}
	if v.askedAt.IsZero() {
		v.askedAt = now
		l.schedule(now.Add(patience * l.options.Report))
	}
	return !l.roster.better(now, v.askedAt.Add(patience*l.options.Report), c, v)
}

// mayTry reports whether a checker may try a version. If the version must be tried
// alone, it reserves the checker for it.
func (l *Ledger) mayTry(now time.Time, c *checker, v *version) bool {
	switch {
	case v.blocked() && now.Before(v.blockedUntil(now)) || now.Before(v.retry) || !c.listens() || l.roster.unsteady(now, c) || c.triesAlone():
		return false
	case v.refusedBy == c.id && now.Before(v.retryAt()) && l.roster.othersListen(c):
		return false
	case c.reserved != nil && c.reserved != v && now.Before(c.reservedUntil) && c.reserved.waitsAlone(c.build):
		return false
	case !v.alone():
		return len(c.trials) < maxTrials
	case slices.ContainsFunc(v.charges(), func(charge *charge) bool { return !l.roster.safe(now, c, charge.losses[0].Time) }):
		return false
	}
	if len(c.trials) > 0 {
		c.reserved, c.reservedUntil = v, now.Add(acceptWithin*l.options.Report+longestWait)
		l.schedule(c.reservedUntil)
		return false
	}
	return true
}

// start makes a checker the canary of a cluster.
func (l *Ledger) start(now time.Time, c *checker, k *cluster, had bool) {
	t := &trial{cluster: k, checker: c, alone: k.version.alone(), had: had}
	k.trial = t
	k.version.begun()
	c.trials[k.name] = t
	c.reserved = nil
	l.trials++
	l.begin(now, t)
	l.events.note(Started, t)
}

// begin begins or restarts a trial, with the present version.
func (l *Ledger) begin(now time.Time, t *trial) {
	v, build := t.cluster.version, t.checker.build
	shapes := v.unproven(build)
	if len(shapes) == 0 || v.busy(build) != nil {
		l.withdraw(now, t)
		return
	}
	t.suspect = v.suspect()
	t.begin(now, shapes)
	l.schedule(t.acceptBy(l.options.Report))
}

// end removes a trial.
func (l *Ledger) end(t *trial) {
	t.release()
	t.cluster.trial = nil
	delete(t.checker.trials, t.cluster.name)
	l.trials--
}

// Withdraw ends the trial of a cluster without a result, if there is one.
func (l *Ledger) Withdraw(now time.Time, name string) {
	if k := l.clusters[name]; k != nil && k.trial != nil {
		l.withdraw(now, k.trial)
	}
}

func (l *Ledger) withdraw(now time.Time, t *trial) {
	l.end(t)
	t.checker.noteEnded(now, t.tried)
	l.events.note(Withdrawn, t)
}

// Trials returns the clusters whose canary a checker is, sorted.
func (l *Ledger) Trials(id string) []string {
	if !l.Trying(id) {
		return nil
	}
	trials := l.roster.checkers[id].trials
	names := make([]string, 0, len(trials))
	for name := range trials {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Trying reports whether a checker is a canary.
func (l *Ledger) Trying(id string) bool {
	c := l.roster.checkers[id]
	return c != nil && len(c.trials) > 0
}

// InProgress counts the trials in progress.
func (l *Ledger) InProgress() int { return l.trials }

// Sent records that a checker got a specifier with all its trials. Serials grow.
func (l *Ledger) Sent(now time.Time, id string, serial uint64) {
	c := l.roster.checkers[id]
	if c == nil {
		return
	}
	for _, t := range c.trials {
		if t.serial == 0 {
			t.serial, t.began = serial, now
			l.schedule(t.acceptBy(l.options.Report))
		}
	}
}

// Accepted records a report with exactly the endpoints of a specifier. lacks reports whether
// the specifier left out a cluster.
func (l *Ledger) Accepted(now time.Time, id string, serial uint64, lacks func(cluster string) bool) {
	c := l.roster.checkers[id]
	if c == nil {
		return
	}
	if c.deaf {
		l.schedule(now)
	}
	c.accepted, c.deaf = true, false
	for name, t := range c.trials {
		if t.serial != 0 && t.serial <= serial && t.accepted.IsZero() && !lacks(name) {
			t.accepted = now
		}
	}
}

// Probed records a report with a probe of an endpoint of this shape.
func (l *Ledger) Probed(id, name string, s specifier.Shape) {
	if k := l.clusters[name]; k != nil && k.trial != nil && k.trial.checker.id == id {
		k.trial.probe(s)
	}
}

// Reported records a report of a checker. Call Probed afterwards for its probes.
func (l *Ledger) Reported(now time.Time, id string) {
	if l.roster.checkers[id].endSilence() {
		l.schedule(now)
	}
	for _, name := range l.Trials(id) {
		if t := l.roster.checkers[id].trials[name]; t.survived(now, l.options.Report) {
			l.end(t)
			for _, s := range t.tried {
				l.shapes.prove(s, t.checker.build)
				l.shapes.changed[s.id] = struct{}{}
			}
			t.cluster.version.settled()
			l.shapes.clear(t.tried)
			l.events.note(Proven, t)
		}
	}
}
