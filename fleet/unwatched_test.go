package fleet

import (
	"testing"
	"time"
)

// wantTold holds how often it was told since the last call that no checker is connected,
// and that this is over.
func (l *lab) wantTold(when string, none, over int) {
	l.Helper()
	gotNone, _ := l.take(NoCheckers)
	gotOver, _ := l.take(NoCheckersOver)
	if gotNone != none || gotOver != over {
		l.Errorf("%s: told %d times that no checker is connected and %d times that one is, want %d and %d", when, gotNone, gotOver, none, over)
	}
}

// TestTheLastCheckerIsMissed, once and at once, and so is the end of that.
func TestTheLastCheckerIsMissed(t *testing.T) {
	l := newLab(t, options(), 3, 60)
	l.lose("c0", "c1")
	l.wantTold("one is left", 0, 0)
	l.join("c2")
	l.wantTold("the stream of the last is replaced", 0, 0)
	l.lose("c2")
	l.wantTold("all are lost", 1, 0)
	lost := l.now
	l.pass(2 * grace)
	l.wantTold("their seats are given up", 0, 0)
	l.join("c7")
	for _, e := range l.events {
		if e.Kind == NoCheckersOver && e.Lasted != l.now.Sub(lost) {
			t.Errorf("it lasted %v, told are %v", l.now.Sub(lost), e.Lasted)
		}
	}
	l.wantTold("one comes", 0, 1)
	l.join("c0")
	l.wantTold("another comes", 0, 0)
	l.lose("c0", "c7")
	l.wantTold("all are lost again", 1, 0)
}

// TestNewcomersAreCheckers: one on probation is connected, too.
func TestNewcomersAreCheckers(t *testing.T) {
	l := watchful(t)
	l.wantTold("it began without any", 1, 1)
	l.join("c7")
	l.wantOnProbation(1)
	for i := range 6 {
		l.lose(numbered(i, i+1)...)
	}
	l.wantTold("one on probation is left", 0, 0)
	l.lose("c7")
	l.wantTold("it is lost as well", 1, 0)
}

// TestAStartWithoutCheckers is told once hdsd has settled, whether or not it knew any.
func TestAStartWithoutCheckers(t *testing.T) {
	plan := newLab(t, options(), 3, 60).rows
	for _, known := range []bool{false, true} {
		for _, come := range []bool{false, true} {
			l := newLab(t, options(), 0, 0)
			l.take(NoCheckers)
			l.Fleet = New(options(), l)
			if known {
				l.rows = plan
				l.Restore(plan)
			} else {
				l.Restore(nil)
			}
			l.pass(time.Minute) // hdsd reads its sources
			l.Begin(l.now)
			l.pass(settle - report)
			l.wantTold("while it settles", 0, 0)
			none := 1
			if come {
				l.join("c0")
				none = 0
			}
			l.pass(2 * report)
			l.wantTold("once it has settled", none, 0)
		}
	}
}
