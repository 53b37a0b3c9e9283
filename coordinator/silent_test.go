package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// hush has a checker reject what it was sent, and hds find that out.
func (l *lab) hush(ids ...string) {
	for _, id := range ids {
		l.checkers[id].mute = true
		l.core.fallSilent(id)
	}
}

// newcomer connects a checker that rejects its first specifier.
func (l *lab) newcomer(id string) {
	l.join(id)
	l.hush(id)
}

// fleetOf is a lab whose checkers know everything about some endpoints.
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

// reporting is who checks an address and reports it.
func (l *lab) reporting(address string) []string {
	return slices.DeleteFunc(l.checking(address), func(id string) bool { return l.checkers[id].mute })
}

func (l *lab) wantReportedBy(count int, addresses []string) {
	l.t.Helper()
	for _, address := range addresses {
		if who := l.reporting(address); len(who) != count {
			l.t.Errorf("%s is reported by %v, want %d", address, who, count)
		}
	}
}

func TestTheEndpointsOfASilentCheckerMove(t *testing.T) {
	l, addresses := fleetOf(t, 5, 30)
	before := len(l.transitions)
	l.newcomer("xa")
	load := l.core.planner.Load("xa")
	if load == 0 {
		t.Fatal("the newcomer has nothing to check")
	}
	l.pass(grace - report)
	if l.core.planner.Load("xa") != load || l.core.idle("xa") {
		t.Error("its seat was given up before the grace period was over")
	}
	if reason := l.core.silenceReason("xa"); !strings.Contains(reason, "substitutes") {
		t.Errorf("the reason is %q", reason)
	}
	l.pass(2 * report)
	if left := l.core.planner.Load("xa"); left != 0 || l.core.checkers["xa"].assigned != 0 || l.plan["xa"] != nil {
		t.Errorf("%d endpoints stay with it, stored are %d", left, len(l.plan["xa"]))
	}
	if reason := l.core.silenceReason("xa"); !strings.Contains(reason, "restart the checker") {
		t.Errorf("the reason is %q", reason)
	}
	sent := l.sent["xa"]
	delete(l.checkers, "xa") // whatever it is sent from now on is an error
	l.wantReportedBy(3, addresses)
	l.say(web("web", addresses...), web("more", one, two))
	l.pass(time.Minute)
	if sent != 1 || l.core.planner.Load("xa") != 0 || !l.core.checkers["xa"].connected {
		t.Errorf("it was sent %d specifiers, and has %d endpoints", sent, l.core.planner.Load("xa"))
	}
	if flaps := len(l.transitions) - before; flaps != 2 { // of one and two
		t.Errorf("%d verdicts changed, want 2", flaps)
	}
}

func TestAnEndpointLeftToSilentCheckersGetsSubstitutesAtOnce(t *testing.T) {
	l, addresses := fleetOf(t, 8, 20)
	pair := l.checking(addresses[0])[:2]
	for _, id := range pair {
		l.lose(id)
		l.join(id)
	}
	l.hush(pair...)
	l.core.tick(l.now)
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

func TestASilentCheckerThatReportsJoinsAgain(t *testing.T) {
	for _, wait := range []time.Duration{report, 10 * grace} { // with its seat, and without
		l, addresses := fleetOf(t, 5, 30)
		l.newcomer("xa")
		l.pass(wait)
		l.checkers["xa"].mute = false
		l.core.speakUp("xa", l.now)
		before := len(l.transitions)
		l.pass(10 * time.Second)
		load := 0
		for _, address := range addresses {
			if slices.Contains(l.checking(address), "xa") {
				load++
			}
		}
		if load == 0 || load != l.core.planner.Load("xa") || len(l.core.silent) > 0 || l.plan["xa"] == nil {
			t.Errorf("after %v: it checks %d, the plan has %d", wait, load, l.core.planner.Load("xa"))
		}
		if len(l.transitions) != before {
			t.Errorf("after %v verdicts changed: %+v", wait, l.transitions[before:])
		}
	}
}

func TestASilentCheckerConnectsAnewAndIsTriedAgain(t *testing.T) {
	l, _ := fleetOf(t, 5, 30)
	l.newcomer("xa")
	l.pass(10 * grace)
	l.join("xa") // by a stream that takes the place of the one before
	if l.core.planner.Load("xa") == 0 || l.core.silent["xa"] != nil {
		t.Error("its new stream has no work")
	}
	l.hush("xa")
	l.pass(10 * grace)
	l.lose("xa")
	if l.core.silent["xa"] != nil || l.core.connected() != 5 {
		t.Error("it is silent though it is gone")
	}
	l.pass(grace + report)
	if l.core.checkers["xa"] != nil {
		t.Error("it is known for ever")
	}
}

func TestWhereMostAreSilentEverySeatIsKept(t *testing.T) {
	l, addresses := fleetOf(t, 6, 30)
	before, plan := len(l.transitions), l.core.planner.Digest()
	names := []string{"c0a", "c1b", "c2c", "c3a", "c4b", "c5c"}
	for _, id := range names { // as after a short break of the network
		l.lose(id)
		l.join(id)
	}
	sent := l.sent["c5c"]
	l.hush(names[:5]...)
	l.pass(time.Minute)
	if l.core.planner.Digest() != plan || l.sent["c5c"] != sent {
		t.Errorf("the plan changed, and the one that reports was sent %d specifiers", l.sent["c5c"]-sent)
	}
	if reason := l.core.silenceReason("c0a"); !strings.Contains(reason, "two others have to report for each silent one, and 1 report where 5 are silent") {
		t.Errorf("the reason is %q", reason)
	}
	l.hush("c5c")
	l.pass(time.Minute)
	for _, address := range addresses {
		if got := l.published("web", address); got.String() != "HEALTHY" {
			t.Errorf("%s is %v while nobody reports", address, got)
		}
	}
	for _, id := range names[:4] { // the cause goes away
		l.checkers[id].mute = false
		l.core.speakUp(id, l.now)
	}
	l.pass(10 * grace)
	l.wantReportedBy(3, addresses)
	if len(l.transitions) != before {
		t.Errorf("verdicts changed: %+v", l.transitions[before:])
	}
}

func TestNothingMovesForSilenceWhileSettling(t *testing.T) {
	l := settled(t, web("web", one))
	l.join("da", "db")
	l.pass(10 * time.Second)
	l.restart()
	l.core.timing.grace = 0
	l.serve(web("web", one))
	plan := l.core.planner.Digest()
	l.join("ca", "cb", "cc", "da", "db")
	l.hush(l.checking(one)[0])
	l.pass(settle - report)
	if l.core.planner.Digest() != plan {
		t.Error("the plan changed before the time to settle had passed")
	}
	l.pass(2*settle + grace)
	l.wantReportedBy(3, []string{one})
}

func TestAnIdleFleetTakesOverFromItsOnlyBusyChecker(t *testing.T) {
	l := newLab(t)
	l.rules.Assignment.Redundancy = 1
	l.serve(web("web", one))
	l.join("ca", "cb")
	l.pass(settle + 10*time.Second)
	busy := l.checking(one)[0]
	l.lose(busy)
	l.join(busy)
	l.hush(busy)
	l.pass(grace + 2*report)
	l.wantReportedBy(1, []string{one})
	l.truth[one] = 2
	l.pass(10 * time.Second)
	l.wantPublished("web", one, 2)
}

// TestManyAreReplacedAFewAtATime: forty of two hundred are silent, as on a
// machine that is busy for a while.
func TestManyAreReplacedAFewAtATime(t *testing.T) {
	l, _ := fleetOf(t, 200, 1000)
	var names []string
	for i := range 40 {
		id := fmt.Sprintf("c%d%c", i, 'a'+i%3)
		names = append(names, id)
		l.lose(id)
		l.join(id)
	}
	l.hush(names...)
	replaced := func() (count int) {
		for _, m := range l.core.silent {
			if m.replaced() {
				count++
			}
		}
		return count
	}
	l.core.tick(l.now)
	if got := replaced(); got != 10 {
		t.Errorf("%d were replaced at once, want 10", got)
	}
	if reason := l.core.silenceReason(names[39]); !strings.Contains(reason, "a few at a time") {
		t.Errorf("of one whose turn has not come the reason is %q", reason)
	}
	l.pass(grace + report)
	if got := replaced(); got != 20 {
		t.Errorf("%d were replaced after a grace period, want 20", got)
	}
}

// TestThePaceNeedsNoGracePeriod: without one, no more are replaced at a time.
func TestThePaceNeedsNoGracePeriod(t *testing.T) {
	l, _ := fleetOf(t, 200, 1000)
	l.core.timing.grace = 0
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprintf("c%d%c", i, 'a'+i%3))
	}
	l.distrust(ids...)
	for range 3 {
		l.core.doubtStirred = true
		l.core.tick(l.now)
		if _, full := l.covered(); full != 10 {
			t.Fatalf("%d are replaced everywhere at once, want 10", full)
		}
	}
	l.pass(leastPace + report)
	if _, full := l.covered(); full != 20 {
		t.Errorf("%d are replaced everywhere %v later, want 20", full, leastPace)
	}
}

// TestTheIdleDoNotHoldTheNextSilentOne: who has nothing any more is no reason to
// leave another's endpoints unreported.
func TestTheIdleDoNotHoldTheNextSilentOne(t *testing.T) {
	l, addresses := fleetOf(t, 5, 30)
	for _, id := range []string{"c0a", "c1b"} {
		l.lose(id)
		l.newcomer(id)
		l.pass(grace + 2*report)
		if !l.core.idle(id) {
			t.Errorf("%s still has its seat: %s", id, l.core.silenceReason(id))
		}
	}
	l.wantReportedBy(3, addresses)
}

// TestHowManyReportDecidesWhetherSeatsAreKept: two others have to report for
// each of several that are silent, and one for one.
func TestHowManyReportDecidesWhetherSeatsAreKept(t *testing.T) {
	for _, test := range []struct {
		silent, idle, reporting int
		held                    bool
	}{
		{silent: 1, reporting: 0, held: true}, {silent: 1, reporting: 1}, {silent: 1, idle: 4, reporting: 1},
		{silent: 2, reporting: 3, held: true}, {silent: 2, reporting: 4}, {silent: 2, idle: 9, reporting: 4},
		{silent: 3, idle: 1, reporting: 5, held: true}, {silent: 3, idle: 1, reporting: 6}, {idle: 3},
	} {
		c := newLab(t).core
		for i := range test.silent + test.idle + test.reporting {
			id := fmt.Sprint(i)
			c.checkers[id] = &checker{connected: true, spoken: true}
			if i < test.silent+test.idle {
				c.silent[id] = &mute{idle: i < test.idle}
			}
		}
		if held := c.holdsSilent(); held != test.held {
			t.Errorf("%+v: held is %t", test, held)
		}
	}
}
