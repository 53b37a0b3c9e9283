package fleet

import (
	"maps"
	"testing"
	"time"

	"hdsd/health"
)

// parts returns how many endpoints checkers have.
func (l *lab) parts(ids []string) map[string]int {
	parts := map[string]int{}
	for _, id := range ids {
		parts[id] = l.Part(id).Endpoints
	}
	return parts
}

// TestManyLostMoveNothing: seven in ten are lost for a minute. The others keep what they
// have and are sent nothing, and half a minute later all is as before.
func TestManyLostMoveNothing(t *testing.T) {
	l := newLab(t, options(), 200, 10_000)
	lost, rest := numbered(0, 140), numbered(140, 200)
	digest, parts, sent := l.Digest(), l.parts(rest), maps.Clone(l.sent)
	l.lose(lost...)
	had, has := 0, 0
	for range 60 {
		l.pass(time.Second)
		had, has = 0, 0
		for id, part := range l.parts(rest) {
			had, has = had+parts[id], has+part
			if most := parts[id] * 6 / 5; part > most { // the planner moves a twelfth at a time
				t.Fatalf("%s has %d endpoints, had %d", id, part, parts[id])
			}
		}
		if has > had*21/20 {
			t.Fatalf("the rest have %d endpoints, had %d", has, had)
		}
	}
	if _, held := l.take(LostHeld); held != len(lost) {
		t.Errorf("%d are logged to keep their seats", held)
	}
	if _, gone := l.take(SeatsGivenUp); gone > 0 {
		t.Errorf("%d gave up their seats", gone)
	}
	for _, id := range lost {
		l.join(id)
	}
	l.pass(30 * time.Second)
	if l.Digest() != digest {
		t.Error("the plan is not what it was")
	}
	for _, id := range rest {
		if n := l.sent[id] - sent[id]; n > 3 {
			t.Errorf("%s was sent %d specifiers", id, n)
		}
	}
}

// TestTheWorkOfManyMovesALittleAtATime: one in five is lost for good. In each grace period,
// nobody gets more than a twentieth of its share.
func TestTheWorkOfManyMovesALittleAtATime(t *testing.T) {
	l := newLab(t, options(), 200, 4000)
	lost, rest := numbered(0, 40), numbered(40, 200)
	before, all := l.parts(rest), 0
	l.lose(lost...)
	left := func() bool {
		for _, part := range l.parts(lost) {
			if part > 0 {
				return true
			}
		}
		return false
	}
	for periods := 0; left(); periods++ {
		if periods > 20 {
			t.Fatal("they keep their seats")
		}
		l.pass(grace)
		parts, moved := l.parts(rest), 0
		for id := range parts {
			moved += max(0, parts[id]-before[id])
		}
		if moved > 8000/20*11/10 {
			t.Errorf("%d seats of 8000 have moved in grace period %d", moved, periods)
		}
		before, all = parts, all+moved
	}
	if all < 8000/5 {
		t.Errorf("%d seats have moved in the end", all)
	}
	if _, gone := l.take(SeatsGivenUp); gone != len(lost) {
		t.Errorf("%d gave up their seats", gone)
	}
}

// TestWhoIsLateAfterARestartKeepsItsSeats: three in ten come back one by one after hdsd should have
// settled, as on a machine that is busy. Nobody else is sent anything more.
func TestWhoIsLateAfterARestartKeepsItsSeats(t *testing.T) {
	l := newLab(t, options(), 200, 10_000)
	late, rest := numbered(0, 60), numbered(60, 200)
	digest := l.Digest()
	l.restart()
	for _, id := range rest {
		l.join(id)
	}
	l.pass(settle - report)
	sent := maps.Clone(l.sent)
	for _, id := range late {
		l.pass(report / 4)
		l.join(id)
	}
	l.pass(3 * report)
	if l.Settling() {
		t.Error("all are back, and hdsd has not settled")
	}
	l.pass(30 * time.Second)
	if l.Digest() != digest {
		t.Error("the plan is not what it was")
	}
	if _, gone := l.take(SeatsGivenUp); gone > 0 {
		t.Errorf("%d gave up their seats", gone)
	}
	for _, id := range rest {
		if l.sent[id] > sent[id] {
			t.Errorf("%s was sent another specifier", id)
		}
	}
}

// TestWhoNeverComesBackAfterARestart: its seats are given up a few at a time, as those of any that
// are lost, or at once where they are few.
func TestWhoNeverComesBackAfterARestart(t *testing.T) {
	for _, test := range []struct{ gone, endpoints, atOnce int }{{2, 10_000, 2}, {40, 10_000, 13}, {7, 400, 7}} {
		l := newLab(t, options(), 200, 0)
		l.redundancy = 3
		for id := range test.endpoints {
			l.add(health.EndpointID(id))
		}
		l.do(l.Apply(l.now))
		l.pass(report)
		l.restart()
		for _, id := range numbered(test.gone, 200) {
			l.join(id)
		}
		l.pass(settle + report)
		all := 0
		for period := 0; all < test.gone; period++ {
			_, n := l.take(SeatsGivenUp)
			if all += n; n > test.atOnce {
				t.Errorf("%d of %d gave up their seats in grace period %d", n, test.gone, period)
			}
			if period > 10 {
				t.Fatalf("%d of %d gave up their seats", all, test.gone)
			}
			l.pass(grace)
		}
	}
}

// TestOneLostIsReplacedAtOnce, and two are.
func TestOneLostIsReplacedAtOnce(t *testing.T) {
	for _, count := range []int{1, 2} {
		l := newLab(t, options(), 8, 100)
		l.lose(numbered(0, count)...)
		for _, e := range l.events {
			if e.Kind == Lost && (e.Locality.Region != "r" || e.Locality.Zone == "") {
				t.Errorf("%v was lost in %v", e.Checkers, e.Locality)
			}
		}
		l.pass(grace + report/2)
		if _, gone := l.take(SeatsGivenUp); gone != count {
			t.Errorf("%d of %d gave up their seats", gone, count)
		}
	}
}

// TestManyLostForGoodAreReplacedInTheEnd: the hold ends, and endpoints that nobody checked
// are checked.
func TestManyLostForGoodAreReplacedInTheEnd(t *testing.T) {
	l := newLab(t, options(), 10, 100)
	l.lose(numbered(0, 7)...)
	l.pass(longestHold - report)
	if _, gone := l.take(SeatsGivenUp); gone > 0 {
		t.Errorf("%d gave up their seats while many are lost", gone)
	}
	l.pass(5 * grace)
	if _, gone := l.take(SeatsGivenUp); gone != 7 {
		t.Errorf("%d gave up their seats in the end", gone)
	}
	for i := range 3 {
		if n := l.Part(numbered(7, 10)[i]).Endpoints; n < 50 {
			t.Errorf("%d endpoints for one of the three that are left", n)
		}
	}
}

// TestTheLostCountAgainstTheSilent: two of eight are silent, and two others lost. One more
// silent one is too many.
func TestTheLostCountAgainstTheSilent(t *testing.T) {
	l := newLab(t, options(), 9, 100)
	l.lose("c0")
	l.hush("c1", "c2")
	l.pass(lateIntervals * report)
	if _, replaced := l.take(SilentReplaced); replaced != 2 {
		t.Errorf("%d are replaced where six report, want 2", replaced)
	}
	l = newLab(t, options(), 9, 100)
	l.lose("c0", "c3")
	l.hush("c1", "c2")
	l.pass(lateIntervals * report)
	if _, replaced := l.take(SilentReplaced); replaced != 0 {
		t.Errorf("%d are replaced where five report", replaced)
	}
}
