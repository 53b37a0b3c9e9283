package coordinator

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

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

// TestUnobservedEndpointsAreCounted while nobody reports, and no longer.
func TestUnobservedEndpointsAreCounted(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	want := func(count float64) {
		t.Helper()
		if got := testutil.ToFloat64(l.core.metrics.unobserved); got != count {
			t.Errorf("hdsd_endpoints_unobserved is %g, want %g", got, count)
		}
	}
	want(0)
	l.hushLater("c0a", "c1b", "c2c", "c3a", "c4b")
	l.pass(time.Minute)
	want(30)
	for _, k := range l.checkers {
		k.mute = false
	}
	l.pass(10 * report)
	want(0)
	l.serve() // which drops them
	l.pass(report)
	want(0)
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
	l, addresses := fleetOf(t, 5, 120)
	for i, who := range []string{"c0a", "c1b", "c2c"} {
		l.cutOff(addresses[30*i:30*i+30], func(id string) bool { return id == who })
		l.pass(30 * time.Second)
	}
	l.wantDoubted(3, 0)
	l.wantReplaced(map[string]bool{"c0a": true, "c1b": true, "c2c": false})
}

// TestDistrustDoubtsNobodyElse: however many an operator distrusts, he knows why;
// they get substitutes as long as anybody is left, and so does one who is doubted.
func TestDistrustDoubtsNobodyElse(t *testing.T) {
	l, addresses := fleetOf(t, 5, 120)
	for _, id := range []string{"c0a", "c1b"} {
		said := store.Trust{Word: store.Distrusted, Reason: "test", Author: "ann", Since: l.now}
		if _, err := l.core.say(id, &said); err != nil {
			t.Fatal(err)
		}
	}
	l.cutOff(addresses[:30], func(id string) bool { return id == "c2c" })
	l.pass(30 * time.Second)
	l.wantDoubted(1, 0)
	l.wantReplaced(map[string]bool{"c0a": true, "c1b": true, "c2c": true, "c3a": false})
}

func (l *lab) wantReplaced(all map[string]bool) {
	l.t.Helper()
	for id, want := range all {
		if (l.core.checkers[id].cover > uncovered) != want {
			l.t.Errorf("%s is replaced: %t, want %t", id, !want, want)
		}
	}
}
