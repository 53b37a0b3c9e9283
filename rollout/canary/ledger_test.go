package canary

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/health"
)

// desk is a ledger with a clock and checkers that the test controls.
type desk struct {
	*Ledger
	t      *testing.T
	now    time.Time
	serial uint64
	stored map[string]*Record
}

func newDesk(t *testing.T, checkers ...string) *desk {
	d := &desk{Ledger: New(Options{Report: report, Calm: calm}), t: t, now: epoch}
	for _, id := range checkers {
		d.connect(id)
	}
	d.pass(time.Minute)
	d.Events()
	return d
}

func checkerOf(id string) *health.Checker { return &health.Checker{ID: id, Version: "envoy/1.40.0"} }

func (d *desk) connect(id string) { d.Connected(d.now, checkerOf(id)) }

func (d *desk) pass(after time.Duration) {
	d.now = d.now.Add(after)
	d.Tick(d.now)
}

func (d *desk) set(name string, shapes ...specifier.Shape) {
	d.Set(d.now, name, Version{Shapes: shapes, Probe: 2 * time.Second})
}

// try asks for a trial, and sends the specifier if it is granted.
func (d *desk) try(id, name string) bool {
	ok := d.Try(d.now, id, name, false)
	d.serial++
	d.Sent(d.now, id, d.serial)
	return ok
}

func (d *desk) follow(id string, lacking ...string) {
	d.Accepted(d.now, id, d.serial, func(name string) bool { return slices.Contains(lacking, name) })
}

func (d *desk) want(what string, got, want bool) {
	d.t.Helper()
	if got != want {
		d.t.Errorf("%s: %t, want %t", what, got, want)
	}
}

func (d *desk) proven(name string) bool { return d.Proven(BuildOf(checkerOf("a")), name) }

// prove runs a trial that a checker survives.
func (d *desk) prove(id, name string) {
	d.t.Helper()
	d.want("the trial", d.try(id, name), true)
	d.follow(id)
	d.pass(3 * time.Second)
	d.Reported(d.now, id)
	d.want("the proof", d.proven(name), true)
}

// condemn loses two checkers over a cluster.
func (d *desk) condemn(name, first, second string) {
	d.t.Helper()
	for _, id := range []string{first, second} {
		d.want(name+" to be tried at "+id, d.try(id, name), true)
		d.Lost(d.now, id)
		d.pass(calm)
		d.connect(id)
		d.pass(calm)
	}
	d.want("blocked", d.Blocked(name), true)
}

func TestProofNeedsAProbeAndALaterReport(t *testing.T) {
	d := newDesk(t, "a")
	d.set("web", 1, 2)
	d.want("first", d.try("a", "web"), true)
	d.Probed("a", "web", 1)
	d.Probed("a", "web", 2)
	d.Reported(d.now, "a")
	d.want("proven before it is followed", d.proven("web"), false)
	d.follow("a")
	d.Probed("a", "web", 1)
	d.Reported(d.now, "a")
	d.want("proven with one of two shapes probed", d.proven("web"), false)
	d.Probed("a", "web", 2)
	d.want("proven without another report", d.proven("web"), false)
	d.Reported(d.now, "a")
	d.want("proven", d.proven("web"), true)
}

// TestVotesProveNothingOfAChangedCluster: an Envoy keeps
// the state of hosts when their check changes.
func TestVotesProveNothingOfAChangedCluster(t *testing.T) {
	d := newDesk(t, "a")
	d.set("web", 1)
	d.want("first", d.Try(d.now, "a", "web", true), true)
	d.serial++
	d.Sent(d.now, "a", d.serial)
	d.follow("a")
	d.Probed("a", "web", 1)
	d.pass(3 * time.Second)
	d.Reported(d.now, "a")
	d.want("proven by its votes", d.proven("web"), false)
	d.pass(time.Second)
	d.Reported(d.now, "a")
	d.want("proven by time", d.proven("web"), true)
}

func TestOneTrialOfAClusterAtATime(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("web", 1)
	d.want("a", d.try("a", "web"), true)
	d.want("a again", d.try("a", "web"), true)
	d.want("b", d.try("b", "web"), false)
	d.want("a stranger", d.try("c", "web"), false)
	d.want("an unknown cluster", d.try("a", "db"), false)
}

func TestACheckerTriesABoundedNumber(t *testing.T) {
	d := newDesk(t, "a")
	for i := range maxTrials + 1 {
		name := fmt.Sprint("cluster-", i)
		d.set(name, specifier.Shape(i))
		d.want(name, d.try("a", name), i < maxTrials)
	}
	d.Lost(d.now, "a")
	if suspects := len(d.Events()); suspects != 2*maxTrials {
		t.Errorf("%d events, want a start and a loss for each of %d trials", suspects, maxTrials)
	}
}

// TestWhatHdsdEndsBlamesNothing: neither what is on trial, nor what was shortly before.
func TestWhatHdsdEndsBlamesNothing(t *testing.T) {
	for _, comesBack := range []bool{false, true} {
		d := newDesk(t, "a", "b")
		d.set("web", 1)
		d.set("db", 2)
		d.try("a", "web")
		d.try("a", "db")
		d.Withdraw(d.now, "db")
		d.Events()
		d.Ended("a")
		if comesBack { // its next stream is there already
			d.Connected(d.now, &health.Checker{ID: "a"})
		} else {
			d.Lost(d.now, "a")
		}
		for _, e := range d.Events() {
			if e.Kind != Withdrawn {
				t.Errorf("%+v", e)
			}
		}
		d.want("what was on trial", d.try("b", "web"), true)
		d.want("what was before, in company", d.try("b", "db"), true)
	}
	d := newDesk(t, "a")
	d.Ended("a")
	d.Ended("a stranger")
}

func TestASuspectIsTriedAloneAndInCalm(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("web", 1)
	d.set("db", 2)
	d.try("a", "web")
	d.Lost(d.now, "a")
	d.want("at once", d.try("b", "web"), false)
	d.want("another one", d.try("b", "db"), true)
	d.pass(calm)
	d.want("in company", d.try("b", "web"), false)
	d.set("new", 3)
	d.want("what is new, where a suspect waits", d.try("b", "new"), false)
	d.follow("b")
	d.pass(3 * time.Second)
	d.Reported(d.now, "b")
	d.want("alone", d.try("b", "web"), true)
	d.want("beside it", d.try("b", "new"), false)
}

// TestACanaryThatFallsSilentEndsItsTrial: another tries the version, alone.
func TestACanaryThatFallsSilentEndsItsTrial(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("web", 1)
	d.try("a", "web")
	d.follow("a")
	d.Silent(d.now, "a")
	d.want("on trial", d.Standing("web").Canary != "", false)
	d.want("at once", d.try("b", "web"), false)
	d.pass(firstRetry)
	d.want("at the silent one", d.try("a", "web"), false)
	d.prove("b", "web")
	d.set("db", 2)
	d.want("another, at the silent one", d.try("a", "db"), false)
	d.Reported(d.now, "a")
	d.want("another, once it reports", d.try("a", "db"), true)
	d.want("blocked", d.Blocked("web"), false)
}

// TestAHangCostsTwoCheckers: a checker falls silent, and its stream ends later.
func TestAHangCostsTwoCheckers(t *testing.T) {
	d := newDesk(t, "a", "b", "c")
	d.set("web", 1)
	for _, id := range []string{"a", "b"} {
		d.want("blocked before "+id, d.Blocked("web"), false)
		d.want(id, d.try(id, "web"), true)
		d.follow(id)
		d.Silent(d.now, id)
		d.pass(20 * time.Second)
		d.Lost(d.now, id)
		d.connect(id)
		d.pass(firstRetry)
	}
	d.want("blocked", d.Blocked("web"), true)
	d.want("a third", d.try("c", "web"), false)
}

// TestSilenceThatEndsIsNoLoss, though the checker is lost later.
func TestSilenceThatEndsIsNoLoss(t *testing.T) {
	d := newDesk(t, "a")
	d.set("web", 1)
	d.try("a", "web")
	d.follow("a")
	d.Silent(d.now, "a")
	d.Reported(d.now, "a")
	d.pass(time.Minute)
	d.Lost(d.now, "a")
	d.want("suspect", len(d.Standing("web").Losses) > 0, false)
}

func TestAReplacedStreamCountsAsLost(t *testing.T) {
	d := newDesk(t, "a")
	d.set("web", 1)
	d.try("a", "web")
	d.connect("a")
	if s := d.Standing("web"); len(s.Losses) != 1 || s.Losses[0].Checker != "a" {
		t.Errorf("it stands like this: %+v", s)
	}
}

func TestWhatEndsABlock(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*desk)
		ends bool
	}{
		"nothing":                {func(*desk) {}, false},
		"the same again":         {func(d *desk) { d.set("web", 2, 1) }, false},
		"more of it":             {func(d *desk) { d.set("web", 1, 2, 3) }, false},
		"less of it":             {func(d *desk) { d.set("web", 1) }, true},
		"another":                {func(d *desk) { d.set("web", 4) }, true},
		"removing and adding it": {func(d *desk) { d.Remove(d.now, "web"); d.set("web", 1, 2) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "a", "b")
			d.set("web", 1, 2)
			d.condemn("web", "a", "b")
			test.do(d)
			d.want("blocked", d.Blocked("web"), !test.ends)
			if n := d.BlockedClusters(); (n == 0) != test.ends {
				t.Errorf("%d are blocked", n)
			}
			d.want("another trial", d.try("a", "web"), test.ends)
		})
	}
}

func TestAProvenVersionThatReturnsNeedsNoTrial(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("web", 1)
	d.prove("a", "web")
	d.set("web", 2)
	d.condemn("web", "a", "b")
	d.want("the old shape", d.ProvenShape(BuildOf(checkerOf("a")), 1), true)
	d.set("web", 1)
	d.want("the old version", d.proven("web"), true)
}

func TestAVersionThatIsNotAcceptedIsRetriedAlone(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.follow("a")
	d.follow("b")
	d.set("web", 1)
	at := []string{"a", "b"}
	for i, wait := range []time.Duration{0, 30, 60, 120, 240, 480, 600, 600} {
		wait *= time.Second
		d.want("a trial", d.try(at[i%2], "web"), true)
		d.pass(acceptWithin*report + 2*time.Second - 1)
		d.want("still on trial", d.Standing("web").Canary == at[i%2], true)
		d.pass(1)
		d.want("on trial after its time", d.Standing("web").Canary != "", false)
		if wait > 0 {
			d.pass(wait - 1)
			d.want("too soon", d.try(at[(i+1)%2], "web"), false)
			d.pass(1)
		}
		d.want("the same checker before the other", d.try(at[i%2], "web"), false)
	}
	d.want("blocked", d.Blocked("web"), false)
}

// TestACheckerThatAcceptsNothingTriesNothing: it tries nothing until
// it has accepted something.
func TestACheckerThatAcceptsNothingTriesNothing(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("web", 1)
	d.try("a", "web")
	d.pass(acceptWithin*report + 2*time.Second)
	if s := d.Standing("web"); s.RefusedBy != "" {
		t.Errorf("it stands like this: %+v", s)
	}
	d.want("the same checker", d.try("a", "web"), false)
	d.want("another", d.try("b", "web"), true)
	d.Withdraw(d.now, "web")
	d.follow("a")
	d.want("the same once it follows", d.try("a", "web"), true)
}

// TestAClusterLeftOutIsNotProven: a checker cannot accept what its protocol
// cannot express.
func TestAClusterLeftOutIsNotProven(t *testing.T) {
	d := newDesk(t, "a")
	d.set("web", 1)
	d.try("a", "web")
	d.follow("a", "web")
	d.pass(4 * time.Second)
	d.Reported(d.now, "a")
	d.want("proven", d.proven("web"), false)
}

func TestACheckerLostAgainAndAgainTriesNothing(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("web", 1)
	for range flaps {
		d.Lost(d.now, "a")
		d.connect("a")
		d.pass(time.Second)
	}
	d.want("now", d.try("a", "web"), false)
	d.try("b", "web")
	d.Lost(d.now, "b")
	d.connect("b")
	for range 2 * calm / time.Second { // its restarts disturb nobody
		d.Lost(d.now, "a")
		d.connect("a")
		d.pass(time.Second)
	}
	d.want("the suspect elsewhere", d.try("b", "web"), true)
	d.Withdraw(d.now, "web")
	d.pass(flapWindow * calm)
	d.set("db", 2)
	d.want("once it stays", d.try("a", "db"), true)
}

// TestATrialGoesOnWithANewVersion: a loss counts for the new
// version.
func TestATrialGoesOnWithANewVersion(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("web", 1)
	d.try("a", "web")
	d.set("web", 2)
	d.want("elsewhere", d.try("b", "web"), false)
	d.Lost(d.now, "a")
	if s := d.Standing("web"); len(s.Losses) != 1 {
		t.Errorf("it stands like this: %+v", s)
	}
}

func TestALossSoonAfterAnEndedTrialCounts(t *testing.T) {
	for wait, counts := range map[time.Duration]bool{time.Second: true, time.Minute: false} {
		d := newDesk(t, "a")
		d.set("web", 1)
		d.try("a", "web")
		d.Withdraw(d.now, "web")
		d.pass(wait)
		d.Lost(d.now, "a")
		d.want(fmt.Sprint("suspect after ", wait), len(d.Standing("web").Losses) == 1, counts)
	}
}

// TestTheSameCallsGiveTheSameAnswers compares the events of two runs of a fleet.
func TestTheSameCallsGiveTheSameAnswers(t *testing.T) {
	var told [2][]Event
	for run := range told {
		w := newWorld(t, 7, 5)
		w.told = &told[run]
		w.confused = true
		w.changes(time.Minute, good, receipt, prober, rejected)
		w.rolling(10 * time.Second)
		w.run(5 * time.Minute)
	}
	if len(told[0]) == 0 || !slices.Equal(told[0], told[1]) {
		t.Errorf("%d events and %d, which differ", len(told[0]), len(told[1]))
	}
}
