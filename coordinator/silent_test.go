//go:build !race || soak

package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/notify"
)

// silenceCheckers makes checkers reject their specifiers, and fall silent.
func (l *lab) silenceCheckers(ids ...string) {
	for _, id := range ids {
		l.checkers[id].rejects = true
		l.setSilent(true, id)
	}
}

// newcomer connects a checker that rejects its first specifier.
func (l *lab) newcomer(id string) {
	l.join(id)
	l.silenceCheckers(id)
}

// fleetOf returns a lab whose checkers have reported all of some endpoints.
func fleetOf(t *testing.T, checkers, endpoints int) (*lab, []string) {
	l := newLab(t)
	var addresses, names []string
	for i := range endpoints {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d:80", i/250, 1+i%250))
	}
	l.serve(web("web", addresses...))
	for i := range checkers {
		names = append(names, fmt.Sprintf("c%d%c", i, 'a'+i%3))
	}
	l.join(names...)
	l.pass(settle + 10*time.Second)
	return l, addresses
}

// reporting returns the checkers that check an address and report it.
func (l *lab) reporting(address string) []string {
	return slices.DeleteFunc(l.checkersOf(address), func(id string) bool { return l.checkers[id].rejects })
}

func (l *lab) wantReportedBy(count int, addresses []string) {
	l.t.Helper()
	for _, address := range addresses {
		if who := l.reporting(address); len(who) != count {
			l.t.Errorf("%s is reported by %v, want %d", address, who, count)
		}
	}
}

func TestEndpointsOfSilentCheckerMove(t *testing.T) {
	l, addresses := fleetOf(t, 5, 30)
	before := len(l.transitions)
	l.newcomer("xa")
	load := l.load("xa")
	if load == 0 {
		t.Fatal("the newcomer has nothing to check")
	}
	l.pass(grace - report)
	if l.load("xa") != load {
		t.Error("its seat was given up before the grace period was over")
	}
	if reason := l.silenceReason("xa"); !strings.Contains(reason, "substitutes") {
		t.Errorf("the reason is %q", reason)
	}
	l.pass(2 * report)
	if left := l.load("xa"); left != 0 || l.plan["xa"] != nil {
		t.Errorf("%d endpoints stay with it, stored are %d", left, len(l.plan["xa"]))
	}
	if reason := l.silenceReason("xa"); !strings.Contains(reason, "restart the checker") {
		t.Errorf("the reason is %q", reason)
	}
	sent := l.sent["xa"]
	delete(l.checkers, "xa") // whatever it is sent from now on is an error
	l.wantReportedBy(3, addresses)
	l.setClusters(web("web", addresses...), web("more", address1, address2))
	l.pass(time.Minute)
	if sent != 1 || l.load("xa") != 0 || !l.core.Fleet.Connected("xa") {
		t.Errorf("it was sent %d specifiers, and has %d endpoints", sent, l.load("xa"))
	}
	if flaps := len(l.transitions) - before; flaps != 2 { // of one and two
		t.Errorf("%d verdicts changed, want 2", flaps)
	}
}

func TestEndpointOfSilentCheckersGetsSubstitutes(t *testing.T) {
	l, addresses := fleetOf(t, 8, 20)
	pair := l.checkersOf(addresses[0])[:2]
	for _, id := range pair {
		l.lose(id)
		l.join(id)
	}
	l.silenceCheckers(pair...)
	l.pass(3 * report) // they may be late
	l.step(machine.Tick{})
	if who := l.reporting(addresses[0]); len(who) < 2 {
		t.Errorf("reported by %v, of whom %v are silent", who, pair)
	}
	before := len(l.transitions)
	l.pass(20 * time.Second)
	l.wantReportedBy(3, addresses)
	if len(l.transitions) != before {
		t.Errorf("verdicts changed: %+v", l.transitions[before:])
	}
}

func TestSilentCheckerReportsAgain(t *testing.T) {
	for _, wait := range []time.Duration{report, 10 * grace} { // with its seat, and without
		l, addresses := fleetOf(t, 5, 30)
		l.newcomer("xa")
		l.pass(wait)
		l.checkers["xa"].rejects = false
		l.setSilent(false, "xa")
		before := len(l.transitions)
		l.pass(10 * time.Second)
		load := 0
		for _, address := range addresses {
			if slices.Contains(l.checkersOf(address), "xa") {
				load++
			}
		}
		if load == 0 || load != l.load("xa") || l.figures().Silent > 0 || l.plan["xa"] == nil {
			t.Errorf("after %v: it checks %d, the plan has %d", wait, load, l.load("xa"))
		}
		if len(l.transitions) != before {
			t.Errorf("after %v verdicts changed: %+v", wait, l.transitions[before:])
		}
	}
}

func TestSilentCheckerReconnects(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	l.newcomer("xa")
	l.pass(10 * grace)
	l.join("xa") // by a stream that takes the place of the one before
	if l.load("xa") == 0 || l.silenceReason("xa") != "" {
		t.Error("its new stream has no work")
	}
	l.silenceCheckers("xa")
	l.pass(10 * grace)
	l.lose("xa")
	if l.silenceReason("xa") != "" || l.figures().Connected != 5 {
		t.Error("it is silent though it is gone")
	}
	l.pass(grace + report)
	if l.isMember("xa") {
		t.Error("it is known for ever")
	}
}

// TestHistoryHasSilentCheckers covers the time and the reason of a silence, and its end.
func TestHistoryHasSilentCheckers(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	told := l.conditions()
	l.newcomer("xa") // rejects its specifier
	l.pass(time.Minute)
	l.checkers["xa"].rejects = false
	l.setSilent(false, "xa")
	l.checkers["c1b"].rejects = true // stops reporting
	l.pass(time.Minute)
	l.checkers["c1b"].rejects = false
	l.pass(10 * time.Second)
	var found []string
	for i := range l.events {
		if e := &l.events[i]; e.Kind == storev1.EventKind_CHECKER_SILENT || e.Kind == storev1.EventKind_CHECKER_REPORTS {
			found = append(found, fmt.Sprintf("%s %s in %s: %s", e.Kind, e.Checker, e.Locality.Zone, e.Text))
		}
	}
	want := []string{
		"CHECKER_SILENT xa in a: connected, but reports nothing of its specifier: it may have rejected it; look at its hds_delegate.errors",
		"CHECKER_REPORTS xa in a: reports again, after 1m0s",
		"CHECKER_SILENT c1b in b: connected, but has stopped reporting",
		"CHECKER_REPORTS c1b in b: reports again, after ",
	}
	if len(found) != len(want) || !slices.EqualFunc(found, want, strings.HasPrefix) {
		t.Errorf("the history has\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
	l.checkers["c2c"].rejects = true
	l.pass(time.Minute)
	l.lose("c2c")
	l.pass(10 * time.Second)
	var conditions []string
	for _, c := range told(notify.CheckerSilent) {
		conditions = append(conditions, fmt.Sprintf("%s over: %t", c.Name, c.Ended))
	}
	if want := []string{"xa over: false", "xa over: true", "c1b over: false", "c1b over: true", "c2c over: false", "c2c over: true"}; !slices.Equal(conditions, want) {
		t.Errorf("the notifications are %q, want %q", conditions, want)
	}
}

func TestSeatsAreKeptWhileMostAreSilent(t *testing.T) {
	l, addresses := fleetOf(t, 6, 30)
	before, plan := len(l.transitions), l.digest()
	names := []string{"c0a", "c1b", "c2c", "c3a", "c4b", "c5c"}
	for _, id := range names { // as after a short break of the network
		l.lose(id)
		l.join(id)
	}
	l.replan()
	sent := l.sent["c5c"]
	l.silenceCheckers(names[:5]...)
	l.pass(time.Minute)
	if l.digest() != plan || l.sent["c5c"] != sent {
		t.Errorf("the plan changed, and the one that reports was sent %d specifiers", l.sent["c5c"]-sent)
	}
	if reason := l.silenceReason("c0a"); !strings.Contains(reason, "two others have to report for each that is silent or lost, and 1 report where 5 are") {
		t.Errorf("the reason is %q", reason)
	}
	l.silenceCheckers("c5c")
	l.pass(time.Minute)
	for _, address := range addresses {
		if got := l.published("web", address); got.String() != "HEALTHY" {
			t.Errorf("%s is %v while nobody reports", address, got)
		}
	}
	for _, id := range names[:4] { // the cause goes away
		l.checkers[id].rejects = false
		l.setSilent(false, id)
	}
	l.pass(10 * grace)
	l.wantReportedBy(3, addresses)
	if len(l.transitions) != before {
		t.Errorf("verdicts changed: %+v", l.transitions[before:])
	}
}

// TestMostAreLostForMinute covers checkers that are cut off, and checkers that hang: hdsd publishes no false
// health, the other checkers keep their endpoints, and the plan returns half a minute later.
func TestMostAreLostForMinute(t *testing.T) {
	for _, how := range []string{"lost", "hanging"} {
		t.Run(how, func(t *testing.T) {
			l, addresses := fleetOf(t, 20, 200)
			before, digest := len(l.transitions), l.digest()
			gone := slices.Sorted(maps.Keys(l.checkers))[:14]
			kept := map[string]*fakeChecker{}
			for _, id := range gone {
				kept[id] = l.checkers[id]
				if kept[id].rejects = true; how == "lost" {
					l.lose(id)
				}
			}
			sent := maps.Clone(l.sent)
			l.pass(time.Minute)
			for id := range l.checkers {
				if n := l.sent[id] - sent[id]; n > 3 {
					t.Errorf("%s was sent %d specifiers meanwhile", id, n)
				}
			}
			for _, address := range addresses {
				if got := l.published("web", address); got != health.Healthy {
					t.Errorf("%s is %v meanwhile", address, got)
				}
			}
			for _, id := range gone {
				if kept[id].rejects = false; how == "lost" {
					l.join(id)
				}
			}
			l.pass(30 * time.Second)
			l.wantReportedBy(3, addresses)
			if l.digest() != digest || len(l.transitions) != before {
				t.Errorf("the plan is the same: %t; verdicts changed: %+v", l.digest() == digest, l.transitions[before:])
			}
		})
	}
}

func TestSilenceMovesNothingWhileSettling(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.join("da", "db")
	l.pass(10 * time.Second)
	l.timing.Grace = 0
	l.restart()
	l.serve(web("web", address1))
	plan := l.digest()
	l.join("ca", "cb", "cc", "da", "db")
	l.silenceCheckers(l.checkersOf(address1)[0])
	l.pass(settle - report)
	if l.digest() != plan {
		t.Error("the plan changed before the time to settle had passed")
	}
	l.pass(2*settle + grace)
	l.wantReportedBy(3, []string{address1})
}

func TestIdleCheckersTakeOver(t *testing.T) {
	l := newLab(t)
	l.rules.Assignment.Redundancy = 1
	l.serve(web("web", address1))
	l.join("ca", "cb")
	l.pass(settle + 10*time.Second)
	busy := l.checkersOf(address1)[0]
	l.lose(busy)
	l.join(busy)
	l.silenceCheckers(busy)
	l.pass(grace + 2*report)
	l.wantReportedBy(1, []string{address1})
	l.truth[address1] = 2
	l.pass(10 * time.Second)
	l.wantPublished("web", address1, 2)
}

// TestGivenUpCheckersDoNotHoldNextSilent covers a silent checker without endpoints: the endpoints of the next
// silent checker still move.
func TestGivenUpCheckersDoNotHoldNextSilent(t *testing.T) {
	l, addresses := fleetOf(t, 5, 30)
	for _, id := range []string{"c0a", "c1b"} {
		l.lose(id)
		l.newcomer(id)
		l.pass(grace + 2*report)
		if l.load(id) > 0 {
			t.Errorf("%s still has its seat: %s", id, l.silenceReason(id))
		}
	}
	l.wantReportedBy(3, addresses)
}
