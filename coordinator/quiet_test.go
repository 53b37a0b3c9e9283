package coordinator

import (
	"testing"
	"time"

	"hdsd/store"
)

// TestACheckerThatStopsReporting while its stream goes on: others take over,
// and it has work again when it reports.
func TestACheckerThatStopsReporting(t *testing.T) {
	l, addresses := fleetOf(t, 5, 30)
	before := len(l.transitions)
	l.hushLater("c0a")
	l.pass(grace + 2*report)
	if l.core.silent["c0a"] != nil {
		t.Error("it is called silent before the time is over")
	}
	l.pass(3 * report)
	if l.core.silent["c0a"] == nil {
		t.Fatal("it is not found")
	}
	l.pass(grace + time.Minute)
	if n := l.core.planner.Load("c0a"); n != 0 {
		t.Errorf("%d endpoints stay with it", n)
	}
	l.wantReportedBy(3, addresses)
	l.checkers["c0a"].mute = false
	l.pass(10 * report)
	if l.core.silent["c0a"] != nil || l.core.planner.Load("c0a") == 0 {
		t.Error("it reports again and has no work")
	}
	if len(l.transitions) != before {
		t.Errorf("verdicts changed: %+v", l.transitions[before:])
	}
}

// TestManyThatStopReportingKeepTheirSeats: what is common to most is not cured
// by giving it to the rest.
func TestManyThatStopReportingKeepTheirSeats(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	before := l.core.planner.Load("c1b")
	l.hushLater("c0a", "c1b", "c2c", "c3a")
	l.pass(time.Minute)
	if len(l.core.silent) != 4 || l.core.planner.Load("c1b") != before {
		t.Errorf("%d are silent, and c1b has %d endpoints of %d", len(l.core.silent), l.core.planner.Load("c1b"), before)
	}
}

// hushLater has checkers stop reporting that have reported until now.
func (l *lab) hushLater(ids ...string) {
	for _, id := range ids {
		l.checkers[id].mute = true
	}
}

// TestSubstitutesStayWhereMoreAreDoubted: when half of the fleet is passed, what
// was replaced before is left as it is.
func TestSubstitutesStayWhereMoreAreDoubted(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	distrust := func(id string) {
		l.core.trust[id] = store.Trust{Word: store.Distrusted, Reason: "test", Author: "ann", Since: l.now}
		l.core.doubtStirred = true
		l.core.replaceDoubted(l.now)
	}
	distrust("c0a")
	distrust("c1b")
	distrust("c2c")
	for id, want := range map[string]bool{"c0a": true, "c1b": true, "c2c": false} {
		if l.core.checkers[id].replaced != want {
			t.Errorf("%s is replaced: %t, want %t", id, !want, want)
		}
	}
}
