package coordinator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"hdsd/api"
	"hdsd/health"
)

// attentionOf gives what needs attention of a kind.
func (l *lab) attentionOf(kind string) (found []api.Attention) {
	l.t.Helper()
	now, err := l.backend().Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return slices.DeleteFunc(now.Attention, func(a api.Attention) bool { return a.Kind != kind })
}

// TestLastCheckerTakesNothingDown covers the last checker: it takes nothing down until ten minutes after the
// loss of the others, and the status shows this. Then it decides, and the status shows that too.
func TestLastCheckerTakesNothingDown(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", address1, address2))
	l.join("ca", "cb", "cc")
	l.pass(settle + 10*time.Second)
	if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) != 0 {
		t.Errorf("all are there, and %+v", found)
	}
	l.lose("cb")
	l.lose("cc")
	l.pass(time.Second)
	if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) != 1 || !strings.Contains(found[0].Text, "1 of 3 checkers left: votes of the others are awaited") {
		t.Errorf("two were lost a moment before, and the one does not decide: %+v", found)
	}
	l.pass(time.Minute)
	l.truth[address1] = health.Unhealthy
	l.pass(8 * time.Minute)
	l.wantPublished("web", address1, health.Healthy)
	if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) != 1 || !strings.Contains(found[0].Text, "1 of 3 checkers left: 2 endpoints lack a majority of the planned votes") {
		t.Errorf("two are lost: %+v", found)
	}
	if n := testutil.ToFloat64(l.core.metrics.states.short); n != 2 {
		t.Errorf("hdsd_endpoints_short_of_votes is %v", n)
	}
	l.pass(2 * time.Minute)
	l.wantPublished("web", address1, health.Unhealthy)
	if last := l.transitions[len(l.transitions)-1]; !strings.Contains(last.Reason, "1 of 1 checker says UNHEALTHY; 3 are planned") {
		t.Errorf("the one decides: %q", last.Reason)
	}
	if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) != 1 || !strings.Contains(found[0].Text, "their votes alone decide") {
		t.Errorf("the one decides: %+v", found)
	}
	l.join("cb", "cc")
	l.pass(time.Minute)
	if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) != 0 {
		t.Errorf("all are back, and %+v", found)
	}
}

// TestOnlyCheckerDecides covers a fleet with one checker from the start.
func TestOnlyCheckerDecides(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", address1, address2))
	l.join("ca")
	l.pass(settle + 10*time.Second)
	l.truth[address1] = health.Unhealthy
	l.pass(5 * time.Second)
	l.wantPublished("web", address1, health.Unhealthy)
	if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) != 0 {
		t.Errorf("nobody is lost, and %+v", found)
	}
	l.lose("ca")
	l.pass(time.Minute)
	l.join("ca")
	l.pass(10 * time.Second)
	l.truth[address2] = health.Unhealthy
	l.pass(10 * time.Second)
	l.wantPublished("web", address2, health.Unhealthy) // it fills its own place
}

// TestRestartKeepsLosses covers a restart after the loss and at the same time: the history has the lost
// checkers, so the last checker takes nothing down until ten minutes after the loss. The status shows this.
func TestRestartKeepsLosses(t *testing.T) {
	for _, together := range []bool{false, true} {
		l := newLab(t)
		l.serve(web("web", address1, address2))
		l.join("ca", "cb", "cc")
		l.pass(settle + 10*time.Second)
		lost := l.now
		if !together {
			l.lose("cb")
			l.lose("cc")
			l.pass(time.Minute)
		}
		l.restart()
		l.serve(web("web", address1, address2))
		l.join("ca")
		l.pass(time.Minute)
		if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) != 1 || !strings.Contains(found[0].Text, "1 of 3 checkers left: 2 endpoints lack a majority of the planned votes") {
			t.Errorf("together %v: after the restart, %+v", together, found)
		}
		all, err := l.backend().Checkers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		away := slices.DeleteFunc(all, func(k api.Checker) bool { return k.Lost == nil })
		if len(away) != 2 || away[0].Locality.Zone != away[0].ID[1:] || !together && !away[0].Lost.Since.Equal(lost) {
			t.Errorf("together %v: listed as lost are %+v", together, away)
		}
		l.truth[address1] = health.Unhealthy
		l.pass(7 * time.Minute)
		l.wantPublished("web", address1, health.Healthy)
		l.pass(3 * time.Minute)
		l.wantPublished("web", address1, health.Unhealthy)
		if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) != 1 || !strings.Contains(found[0].Text, "their votes alone decide") {
			t.Errorf("together %v: the one decides: %+v", together, found)
		}
		l.join("cb", "cc")
		l.pass(time.Minute)
		if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) != 0 {
			t.Errorf("together %v: all are back, and %+v", together, found)
		}
	}
}

// TestReturnedCheckerDecides covers a checker that was lost before a restart: it decides as soon as it, or
// another one in its place, connects.
func TestReturnedCheckerDecides(t *testing.T) {
	for _, back := range []string{"ca", "new"} {
		l := newLab(t)
		l.serve(web("web", address1, address2))
		l.join("ca")
		l.pass(settle + 10*time.Second)
		l.lose("ca")
		l.pass(time.Second)
		l.restart()
		l.serve(web("web", address1, address2))
		l.join(back)
		l.pass(time.Minute)
		l.truth[address1] = health.Unhealthy
		l.pass(10 * time.Second)
		l.wantPublished("web", address1, health.Unhealthy)
		if found := l.attentionOf("TOO_FEW_CHECKERS"); len(found) == 1 && strings.Contains(found[0].Text, "nothing takes them down") {
			t.Errorf("%s is there, and %+v", back, found)
		}
	}
}
