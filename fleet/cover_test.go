package fleet

import (
	"testing"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// TestManyDoubtedAreReplacedAFewAtATime: where too few believed checkers would be
// left all of them are at once, the rest as silent checkers are.
func TestManyDoubtedAreReplacedAFewAtATime(t *testing.T) {
	l := newLab(t, options(), 200, 1000)
	l.judge(Distrusted, numbered(0, 40)...)
	for _, want := range []int{10, 20, 30, 40} {
		l.tick()
		covers := map[cover]int{fullCover: want}
		if want < 40 {
			covers[leastCover] = 40 - want
		}
		l.wantCover(covers)
		l.pass(grace + report)
	}
	l.judge(Believed, numbered(0, 40)...)
	l.tick()
	l.wantCover(map[cover]int{})
}

// TestThePaceNeedsNoGracePeriod: without one, no more are replaced at a time.
func TestThePaceNeedsNoGracePeriod(t *testing.T) {
	l := newLab(t, Options{Report: report, Settle: settle}, 200, 1000)
	l.judge(Doubted, numbered(0, 40)...)
	for range 3 {
		l.Reconsider()
		l.tick()
		l.wantCover(map[cover]int{fullCover: 10, leastCover: 30})
	}
	l.pass(leastPeriod + report)
	l.wantCover(map[cover]int{fullCover: 20, leastCover: 20})
}

// TestNobodyIsReplacedEverywhereWhileHalfAreAway: what is wrong with half of the
// fleet has one cause, and moves nothing more.
func TestNobodyIsReplacedEverywhereWhileHalfAreAway(t *testing.T) {
	for _, test := range []struct {
		name string
		away func(l *lab, ids ...string)
		back func(l *lab, ids ...string)
		many int
		want cover
	}{
		{"some lost", (*lab).lose, nil, 2, fullCover},
		{"half lost", (*lab).lose, nil, 3, leastCover},
		{"some silent", (*lab).hush, (*lab).speak, 2, fullCover},
		{"half silent", (*lab).hush, (*lab).speak, 3, leastCover},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, options(), 8, 60)
			away := numbered(1, 1+test.many)
			test.away(l, away...)
			l.judge(Distrusted, "c0")
			l.tick()
			l.wantCover(map[cover]int{test.want: 1})
			if test.back != nil {
				test.back(l, away...)
			}
			l.pass(longestHold + 3*grace) // or they are given up
			l.wantCover(map[cover]int{fullCover: 1})
		})
	}
}

// TestSubstitutesStayWhereMoreAreDoubted: when half of the fleet is passed, who
// was replaced before stays so.
func TestSubstitutesStayWhereMoreAreDoubted(t *testing.T) {
	l := newLab(t, options(), 5, 120)
	for _, id := range []string{"c0", "c1", "c2"} {
		l.judge(Doubted, id)
		l.pass(30 * time.Second)
	}
	l.wantCover(map[cover]int{fullCover: 2})
}

// TestDistrustedCheckersDoNotHoldSubstitutes: however many an operator distrusts, he knows why;
// they get substitutes as long as anybody is left, and so does one that is doubted.
func TestDistrustedCheckersDoNotHoldSubstitutes(t *testing.T) {
	l := newLab(t, options(), 5, 120)
	l.judge(Distrusted, "c0", "c1")
	l.judge(Doubted, "c2")
	l.pass(30 * time.Second)
	l.wantCover(map[cover]int{leastCover: 3})
}

// TestWhoIsEarlyIsNotReplaced: when all fails at once, each checker is doubted until the others
// have reported it, too. What hdsd has yet to read counts as not reported.
func TestWhoIsEarlyIsNotReplaced(t *testing.T) {
	l := newLab(t, options(), 16, 160)
	behind := time.Duration(0)
	tick := func(passed time.Duration) {
		l.now = l.now.Add(passed)
		l.Reconsider()
		l.do(l.Tick(l.now, l.now.Add(-behind)))
	}
	l.judge(Doubted, numbered(0, 6)...)
	tick(0)
	tick(grace - report)
	l.wantCover(map[cover]int{})
	if held, _ := l.take(DoubtedHeld); held > 0 {
		t.Error("they are said to do without substitutes")
	}
	l.judge(Believed, "c0")
	tick(0)
	l.judge(Doubted, "c0") // it only paused
	behind = 2 * report
	tick(report)
	l.wantCover(map[cover]int{})
	tick(2 * report)
	l.wantCover(map[cover]int{fullCover: 2, leastCover: 4})
}

// TestWhoIsBlindAndThenDoubtedMayBeEarly, too.
func TestWhoIsBlindAndThenDoubtedMayBeEarly(t *testing.T) {
	l := newLab(t, options(), 12, 120)
	l.judge(Blind, "c0")
	l.pass(2 * report)
	l.wantCover(map[cover]int{outnumbered: 1})
	l.judge(Doubted, "c0")
	l.tick()
	l.wantCover(map[cover]int{outnumbered: 1})
	l.pass(grace)
	l.wantCover(map[cover]int{fullCover: 1})
}

// TestALiarThatPausesIsReplaced: it is believed for a moment before the grace period is over, again
// and again.
func TestALiarThatPausesIsReplaced(t *testing.T) {
	l := newLab(t, options(), 16, 160)
	covered, doubted := 0, 0
	for range 100 {
		l.judge(Doubted, "c0")
		for range grace/report - 1 {
			l.pass(report)
			doubted++
			covered += boolToInt(l.checkers["c0"].cover > uncovered)
		}
		l.judge(Believed, "c0")
		l.pass(report / 2)
	}
	if covered < doubted*9/10 {
		t.Errorf("it has substitutes in %d of %d report intervals", covered, doubted)
	}
}

// TestTheBlindAreOutnumbered at the pace of the doubted, but not while half of the
// fleet cannot be relied on.
func TestTheBlindAreOutnumbered(t *testing.T) {
	l := newLab(t, options(), 12, 120)
	l.judge(Blind, "c0", "c1")
	l.judge(Distrusted, numbered(2, 6)...)
	l.pass(report)
	if trust, troubled := l.assess(l.now); trust != (Trust{Believed: 6, Distrusted: 4, Blind: 2}) || len(troubled) != 6 {
		t.Errorf("counted are %+v, of whom %v are troubled", trust, troubled)
	}
	l.wantCover(map[cover]int{leastCover: 4})
	l.judge(Believed, numbered(2, 6)...)
	l.tick()
	l.wantCover(map[cover]int{outnumbered: 2})
	l.judge(Blind, "c2")
	l.tick()
	l.wantCover(map[cover]int{outnumbered: 2}) // two in a grace period
	l.pass(grace + report)
	l.wantCover(map[cover]int{outnumbered: 3})
	l.judge(Distrusted, "c0")
	l.pass(grace + report)
	l.wantCover(map[cover]int{outnumbered: 2, fullCover: 1})
	l.judge(Blind, "c0")
	l.pass(2 * grace)
	l.wantCover(map[cover]int{outnumbered: 3})
}

// TestHeldSubstitutesAreLoggedOnce and that this is over, whether the others are
// back or nobody is doubted any more.
func TestHeldSubstitutesAreLoggedOnce(t *testing.T) {
	l := newLab(t, options(), 8, 60)
	logged := func(when string, ticks, begins, ends int) {
		t.Helper()
		for range ticks {
			l.Reconsider()
			l.tick()
		}
		b, _ := l.take(DoubtedHeld)
		e, _ := l.take(DoubtedHeldOver)
		if b != begins || e != ends {
			t.Errorf("%s: %d events that they are held back and %d that it is over, want %d and %d", when, b, e, begins, ends)
		}
	}
	l.hush(numbered(1, 4)...)
	logged("nobody is doubted", 5, 0, 0)
	l.judge(Distrusted, "c0")
	logged("half are away", 5, 1, 0)
	l.speak(numbered(1, 4)...)
	logged("they are back", 5, 0, 1)
	l.hush(numbered(1, 4)...)
	logged("away again, but it has its substitutes", 5, 0, 0)
	l.judge(Distrusted, "c4")
	logged("and another is doubted", 5, 1, 0)
	l.judge(Believed, "c4")
	logged("believed again", 1, 0, 1)
	l.speak(numbered(1, 4)...)
	l.judge(Distrusted, "c4", "c5")
	logged("a few at a time", 5, 0, 0)
}

// TestDivide: the endpoints of a divided zone get a second checker of it at once, and lose
// it when that is over.
func TestDivide(t *testing.T) {
	l := newLab(t, options(), 9, 0)
	zone := health.Locality{Region: "r", Zone: "1"}
	for i := range 60 {
		id := health.EndpointID(i)
		l.present[id] = true
		l.Upsert(assign.Endpoint{ID: id, Hash: health.Hash(i+1) * 0x9e3779b97f4a7c15, Locality: zone, Class: l.Class(assign.Class{}), Redundancy: 2, Rate: 1})
	}
	l.do(l.Apply(l.now))
	l.pass(2 * report)
	before := l.Digest()
	l.Divide(zone, false)
	l.do(l.Apply(l.now))
	for i := range 60 {
		home := 0
		for _, id := range l.planner.Checkers(health.EndpointID(i)) {
			if l.checkers[id].Locality == zone {
				home++
			}
		}
		if home != 2 {
			t.Fatalf("endpoint %d has %v", i, l.planner.Checkers(health.EndpointID(i)))
		}
	}
	l.pass(2 * report)
	l.Divide(zone, true)
	l.do(l.Apply(l.now))
	l.pass(2 * report)
	if l.Digest() != before {
		t.Error("the plan is another when it is over")
	}
	l.wantInStep()
}
