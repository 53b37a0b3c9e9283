package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hdsd/health"
)

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
		f := New(options(), nil)
		for i := range test.silent + test.idle + test.reporting {
			id := fmt.Sprint(i)
			f.checkers[id] = &checker{Checker: health.Checker{ID: id}, connected: true, voted: true}
			if i < test.silent+test.idle {
				f.silent[id] = &silence{idle: i < test.idle}
			}
		}
		present := f.muster()
		if held := present.holdsSilent(); held != test.held {
			t.Errorf("%+v: held is %t", test, held)
		}
	}
}

// TestSilentOnesOfAFleetThatBeginsHaveLonger: most have yet to report, and never do, as where
// what they should check is withheld. Three that are silent have 90 s.
func TestSilentOnesOfAFleetThatBeginsHaveLonger(t *testing.T) {
	for _, count := range []int{2, 3} {
		l := newLab(t, options(), 0, 1000)
		for i, id := range numbered(0, 40) {
			l.silent[id] = i > 15
			l.join(id)
		}
		l.pass(settle + 2*report)
		l.hush(numbered(0, count)...)
		l.pass(4 * report)
		if _, replaced := l.take(SilentReplaced); (replaced > 0) != (count < 3) {
			t.Errorf("of %d, %d are replaced early", count, replaced)
		}
		l.pass(longestHold + 6*grace) // a few at a time
		if _, replaced := l.take(SilentReplaced); (replaced == count) != (count == 3) {
			t.Errorf("of %d, %d are replaced late", count, replaced)
		}
	}
}

// TestManySilentAreReplacedAFewAtATime: forty of two hundred are silent, as on a
// machine that is busy for a while.
func TestManySilentAreReplacedAFewAtATime(t *testing.T) {
	l := newLab(t, options(), 200, 1000)
	l.hush(numbered(0, 40)...)
	l.pass(lateIntervals*report - report/2)
	if _, got := l.take(SilentReplaced); got > 0 {
		t.Errorf("%d are replaced that may be late", got)
	}
	l.pass(report / 2)
	if _, got := l.take(SilentReplaced); got < 8 || got > 10 {
		t.Errorf("%d are replaced at once, want one in twenty", got)
	}
	l.pass(8 * grace)
	if _, got := l.take(SilentReplaced); got < 30 {
		t.Errorf("%d are replaced later", got)
	}
	if _, got := l.take(SilentGivenUp); got < 38 {
		t.Errorf("%d have lost their seats in the end", got)
	}
	if e := l.Report(l.now, "c0", true); !e.Ignored {
		t.Error("a heartbeat of a silent checker counts")
	}
	l.speak("c0")
	if e := l.Report(l.now, "c0", true); e.Ignored || l.Part("c0").Endpoints == 0 {
		t.Error("it reports again, and is ignored or has no work")
	}
}

// TestAHandoverEndsWithTheAbility: a checker that is not able any more to check
// what it hands over is not sent it.
func TestAHandoverEndsWithTheAbility(t *testing.T) {
	l := newLab(t, options(), 2, 600)
	l.doubtful = true
	l.join("c3")
	l.pass(report)
	if l.handovers["c0"] == nil {
		t.Fatal("c0 hands nothing over")
	}
	l.unable["c0"] = true
	l.specify("c0")
	if l.handovers["c0"] != nil || len(l.has["c0"]) != l.Part("c0").Endpoints {
		t.Errorf("c0 has %d endpoints of %d, and hands over %d", len(l.has["c0"]), l.Part("c0").Endpoints, len(l.handovers.endpoints("c0")))
	}
	l.wantInStep()
}

// TestAHandoverEnds when the new checkers are believed, or after a minute.
func TestAHandoverEnds(t *testing.T) {
	for _, believed := range []bool{true, false} {
		l := newLab(t, options(), 2, 600)
		l.doubtful = true
		l.join("c3")
		l.pass(longestHandover - report)
		if len(l.handovers) == 0 {
			t.Error("a handover ends before anybody is believed")
		}
		l.doubtful = !believed
		if believed {
			l.pass(report / 2)
		} else {
			l.pass(2 * report)
		}
		if len(l.handovers) > 0 {
			t.Errorf("handovers of %v do not end where the new checkers are believed: %t", slices.Collect(maps.Keys(l.handovers)), believed)
		}
	}
}

// TestAHandoverEndsPartly for the endpoints whose new checkers are believed, but not before
// the grace period is over, and once in each.
func TestAHandoverEndsPartly(t *testing.T) {
	l := newLab(t, options(), 2, 600)
	l.doubtful = true
	l.join("c3")
	l.pass(report)
	all := l.handovers.endpoints("c0")
	if len(all) < 3 {
		t.Fatalf("c0 hands %d endpoints over", len(all))
	}
	l.doubtful, l.doubts = false, map[health.EndpointID]bool{all[0]: true, all[1]: true}
	l.pass(grace - 2*report)
	if got := l.handovers.endpoints("c0"); !slices.Equal(got, all) {
		t.Errorf("after less than the grace period, %d of %d go on", len(got), len(all))
	}
	l.pass(2 * report)
	if got := l.handovers.endpoints("c0"); !slices.Equal(got, all[:2]) {
		t.Errorf("after the grace period, %v go on, and not just %v", got, all[:2])
	}
	l.doubts = map[health.EndpointID]bool{all[1]: true}
	l.pass(grace - 2*report)
	if got := l.handovers.endpoints("c0"); !slices.Equal(got, all[:2]) {
		t.Errorf("soon after some have ended, %v go on, and not %v", got, all[:2])
	}
	l.doubts = nil
	l.pass(report)
	if got := l.handovers.endpoints("c0"); len(got) > 0 {
		t.Errorf("all are taken over, and %v go on", got)
	}
	l.wantInStep()
}

// TestStoredSeatsAreKeptWhileSettling and no longer.
func TestStoredSeatsAreKeptWhileSettling(t *testing.T) {
	l := newLab(t, options(), 3, 60)
	plan := maps.Clone(l.rows)
	after := newLab(t, options(), 0, 0)
	after.Fleet = New(options(), after)
	after.rows = plan
	after.Restore(maps.Clone(plan))
	for i := range 60 {
		after.add(health.EndpointID(i))
	}
	after.do(after.Apply(after.now))
	after.pass(time.Minute) // hdsd reads its sources
	after.Begin(after.now)
	after.join("c0")
	after.join("c7")
	after.pass(settle - report)
	if got := after.Figures(); got.Connected != 2 || got.Seated != 4 || after.Part("c7").Endpoints > 0 || !after.Settling() {
		t.Errorf("while it settles: %+v, and c7 has %d endpoints", got, after.Part("c7").Endpoints)
	}
	after.pass(2 * report)
	if got := after.Figures(); got.Connected != 2 || got.Seated != 2 || after.Part("c7").Endpoints != 60 || after.Settling() {
		t.Errorf("after that: %+v, and c7 has %d endpoints", got, after.Part("c7").Endpoints)
	}
	if _, named := after.take(SeatsGivenUp); named != 2 || after.rows["c1"] != nil || after.rows["c2"] != nil {
		t.Errorf("%d are given up, stored are %v", named, slices.Sorted(maps.Keys(after.rows)))
	}
}

// TestPromotedSubstitutesAreStored: when the seats of lost checkers are given up,
// substitutes get seats at what they check already.
func TestPromotedSubstitutesAreStored(t *testing.T) {
	l := newLab(t, options(), 6, 40)
	l.lose("c0", "c1")
	l.pass(grace + 5*report)
	for id, row := range l.planner.Plan() {
		if !slices.Equal(l.rows[id], row) {
			t.Errorf("of %s %d endpoints are stored, planned are %d", id, len(l.rows[id]), len(row))
		}
	}
}

// TestDeadlinesAreKept: a Fleet that is only asked when it is due does the same
// as one that is asked all the time.
func TestDeadlinesAreKept(t *testing.T) {
	busy, calm := newLab(t, options(), 8, 100), newLab(t, options(), 8, 100)
	for _, l := range []*lab{busy, calm} {
		l.lose("c1", "c2")
		l.hush("c3")
		l.judge(Doubted, "c4")
		l.tick()
	}
	end, ticks := busy.now.Add(time.Minute), 0
	for busy.now.Before(end) {
		busy.now = busy.now.Add(50 * time.Millisecond)
		for _, l := range []*lab{busy, calm} {
			if at, ok := calm.NextDeadline(); l == calm && (!ok || busy.now.Before(at)) {
				continue
			}
			if l == calm {
				ticks++
			}
			l.now = busy.now
			for _, id := range numbered(0, 8) {
				l.do(l.Report(l.now, id, true))
			}
			l.tick()
		}
	}
	if busy.Digest() != calm.Digest() || !maps.EqualFunc(busy.rows, calm.rows, slices.Equal) || busy.Figures() != calm.Figures() {
		t.Errorf("the one has %+v, the other %+v", busy.Figures(), calm.Figures())
	}
	if ticks > 300 {
		t.Errorf("%d ticks in a minute", ticks)
	}
}

// TestRandomEventsKeepVotesInStep the votes that are expected, the stored rows and the
// specifiers are in step with the plan.
func TestRandomEventsKeepVotesInStep(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLab(t, options(), 6, 40)
		next := health.EndpointID(40)
		for range 150 {
			id := fmt.Sprintf("c%d", random.IntN(9))
			switch random.IntN(9) {
			case 0, 1:
				delete(l.silent, id)
				l.join(id)
			case 2:
				l.lose(id)
			case 3:
				l.hush(id)
			case 4:
				l.speak(id)
			case 5:
				l.judge(Standing(random.IntN(4)), id)
			case 6:
				l.doubtful = !l.doubtful
			case 7:
				l.unable[id] = !l.unable[id]
			case 8:
				for _, endpoint := range sortedKeys(l.present) {
					if random.IntN(10) == 0 {
						l.remove(endpoint)
					}
				}
				for range random.IntN(5) {
					l.add(next)
					next++
				}
				l.do(l.Apply(l.now))
			}
			l.pass(time.Duration(random.IntN(4)) * report / 2)
		}
		l.pass(2 * longestHandover)
		for id, row := range l.planner.Plan() {
			if !slices.Equal(l.rows[id], row) && len(l.rows[id])+len(row) > 0 {
				t.Errorf("of %s %d endpoints are stored, planned are %d", id, len(l.rows[id]), len(row))
			}
			if !l.Connected(id) || l.idle(id) {
				continue
			}
			if got := slices.Sorted(maps.Keys(l.votes[id])); !slices.Equal(got, l.has[id]) {
				t.Errorf("%s was sent %v, and checks %v", id, l.has[id], got)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestNobodyIsLateForWhatWasNotRead: reports wait while the owner is busy. Who has stopped
// reporting before those that wait were made is found.
func TestNobodyIsLateForWhatWasNotRead(t *testing.T) {
	l := newLab(t, options(), 5, 100)
	said := l.now
	l.now = l.now.Add(time.Hour)
	l.do(l.Tick(l.now, said.Add(grace+3*report)))
	if _, quiet := l.take(StoppedReporting); quiet > 0 {
		t.Errorf("%d are called quiet whose reports wait", quiet)
	}
	l.now = l.now.Add(report)
	l.do(l.Tick(l.now, said.Add(grace+3*report+report/2)))
	if _, quiet := l.take(StoppedReporting); quiet != 5 {
		t.Errorf("%d are called quiet, want 5", quiet)
	}
}
