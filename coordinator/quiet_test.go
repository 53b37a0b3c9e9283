//go:build !race || soak

package coordinator

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestStoppedCheckerIsReplaced covers a checker that stops reporting on an open stream. It gets a specifier
// again when it reports.
func TestStoppedCheckerIsReplaced(t *testing.T) {
	l, addresses := fleetOf(t, 5, 30)
	before := len(l.transitions)
	l.stopReporting("c0a")
	l.pass(grace + 2*report)
	if l.silenceReason("c0a") != "" {
		t.Error("it is called silent before the time is over")
	}
	l.pass(3 * report)
	if l.silenceReason("c0a") == "" {
		t.Fatal("it is not found")
	}
	l.pass(grace + time.Minute)
	if n := l.load("c0a"); n != 0 {
		t.Errorf("%d endpoints stay with it", n)
	}
	l.wantReportedBy(3, addresses)
	l.checkers["c0a"].rejects = false
	l.pass(10 * report)
	if l.silenceReason("c0a") != "" || l.load("c0a") == 0 {
		t.Error("it reports again and has no work")
	}
	if len(l.transitions) != before {
		t.Errorf("verdicts changed: %+v", l.transitions[before:])
	}
}

// TestManyStoppedCheckersKeepSeats covers a common cause, which would silence the other checkers too.
func TestManyStoppedCheckersKeepSeats(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	before := l.load("c1b")
	l.stopReporting("c0a", "c1b", "c2c", "c3a")
	l.pass(time.Minute)
	if l.figures().Silent != 4 || l.load("c1b") != before {
		t.Errorf("%d are silent, and c1b has %d endpoints of %d", l.figures().Silent, l.load("c1b"), before)
	}
}

// TestUnobservedEndpoints covers endpoints without believed votes, until checkers report again.
func TestUnobservedEndpoints(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	want := func(count float64) {
		t.Helper()
		if got := testutil.ToFloat64(l.core.metrics.votes.unobserved); got != count {
			t.Errorf("hdsd_endpoints_unobserved is %g, want %g", got, count)
		}
	}
	want(0)
	l.stopReporting("c0a", "c1b", "c2c", "c3a", "c4b")
	l.pass(time.Minute)
	want(30)
	for _, k := range l.checkers {
		k.rejects = false
	}
	l.pass(10 * report)
	want(0)
	l.serve() // which drops them
	l.pass(report)
	want(0)
}

// stopReporting makes checkers stop reporting.
func (l *lab) stopReporting(ids ...string) {
	for _, id := range ids {
		l.checkers[id].rejects = true
	}
}
