package canary

import (
	"slices"
	"time"
)

// trial is one version of a cluster at one checker.
type trial struct {
	cluster *cluster
	checker *checker
	alone   bool
	suspect bool      // the cluster was when it began, so that another loss decides
	had     bool      // the checker had the cluster before: its votes tell nothing of the new version
	serial  uint64    // of the first specifier that has it; 0: not sent yet
	began   time.Time // when it was sent

	followed time.Time      // when a report first did; zero: none has
	probes   map[Shape]bool // on trial: whether an endpoint was seen probed
	waiting  int            // shapes of which none was
}

// notTakenAfter is how many reports a canary has to follow its specifier, and
// the time of a first probe.
const notTakenAfter = 3

// longestWait bounds how long a first probe is waited for.
const longestWait = 5 * time.Second

// sureAfter is how many reports after the first that follows a change of what
// the checker had it is sure to have taken note of the change: its reports look
// the same before and after, where the endpoints are the same.
const sureAfter = 2

func (t *trial) wait() time.Duration { return min(t.cluster.version.Probe, longestWait) }

// lived tells whether a checker that reports now has lived through the first
// probe.
func (l *Ledger) lived(now time.Time, t *trial) bool {
	if t.followed.IsZero() {
		return false
	}
	need := t.wait()
	if t.had {
		need += sureAfter * l.options.Report
	}
	return t.waiting == 0 || now.Sub(t.followed) >= need
}

// start makes a checker a cluster's canary.
func (l *Ledger) start(now time.Time, c *checker, k *cluster, had bool) {
	t := &trial{cluster: k, checker: c, alone: k.alone(), suspect: len(k.losses) > 0, had: had}
	k.trial = t
	c.trials[k.name] = t
	c.reserved = nil
	l.trials++
	l.renew(now, t)
	l.tell(Started, t)
}

// renew has a trial begin with the version that there is now.
func (l *Ledger) renew(now time.Time, t *trial) {
	shapes := t.cluster.unproven(t.checker.build)
	if len(shapes) == 0 {
		l.withdraw(now, t)
		return
	}
	t.had = t.had || t.serial != 0
	t.serial, t.began, t.followed = 0, now, time.Time{}
	t.probes, t.waiting = make(map[Shape]bool, len(shapes)), len(shapes)
	for _, s := range shapes {
		t.probes[s] = false
	}
	l.wake(l.deadline(t))
}

// deadline is when a trial that is not followed ends.
func (l *Ledger) deadline(t *trial) time.Time {
	return t.began.Add(notTakenAfter*l.options.Report + t.wait())
}

// end takes a trial out.
func (l *Ledger) end(t *trial) {
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
	t.checker.remember(now, t.cluster)
	l.tell(Withdrawn, t)
}

// Trials are the clusters that a checker is the canary of, sorted.
func (l *Ledger) Trials(id string) []string {
	c := l.checkers[id]
	if c == nil || len(c.trials) == 0 {
		return nil
	}
	names := make([]string, 0, len(c.trials))
	for name := range c.trials {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Trying tells whether a checker is a canary.
func (l *Ledger) Trying(id string) bool {
	c := l.checkers[id]
	return c != nil && len(c.trials) > 0
}

// UnderWay is how many trials are.
func (l *Ledger) UnderWay() int { return l.trials }

// Sent says that the checker was sent a specifier that has all its trials.
// Serials grow.
func (l *Ledger) Sent(now time.Time, id string, serial uint64) {
	c := l.checkers[id]
	if c == nil {
		return
	}
	for _, t := range c.trials {
		if t.serial == 0 {
			t.serial, t.began = serial, now
			l.wake(l.deadline(t))
		}
	}
}

// Followed says that a report listed just what a specifier has. Clusters that
// lacks names were left out of it on the way.
func (l *Ledger) Followed(now time.Time, id string, serial uint64, lacks func(cluster string) bool) {
	c := l.checkers[id]
	if c == nil {
		return
	}
	if c.deaf {
		l.wake(now)
	}
	c.followed, c.deaf = true, false
	for name, t := range c.trials {
		if t.serial != 0 && t.serial <= serial && t.followed.IsZero() && !lacks(name) {
			t.followed = now
		}
	}
}

// Probed says that a report shows an endpoint of this shape to have been
// probed.
func (l *Ledger) Probed(id, name string, s Shape) {
	k := l.clusters[name]
	if k == nil || k.trial == nil || k.trial.checker.id != id {
		return
	}
	t := k.trial
	if seen, tried := t.probes[s]; tried && !seen && !t.had && !t.followed.IsZero() {
		t.probes[s] = true
		t.waiting--
	}
}

// Heard says that a checker reported, before what that report shows is told by
// Probed.
func (l *Ledger) Heard(now time.Time, id string) {
	for _, name := range l.Trials(id) {
		if t := l.clusters[name].trial; l.lived(now, t) {
			l.prove(t)
		}
	}
}

func (l *Ledger) prove(t *trial) {
	k := t.cluster
	for s := range t.probes {
		k.proven[Proof{t.checker.build, s}] = struct{}{}
	}
	clear(k.builds)
	l.acquit(k)
	k.refused, k.refusedBy, k.retry = 0, "", time.Time{}
	l.end(t)
	l.tell(Proven, t)
}
