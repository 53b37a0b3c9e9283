package fleet

import (
	"maps"
	"testing"
	"time"
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
