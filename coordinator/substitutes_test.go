package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/store"
)

// distrust has an operator distrust checkers.
func (l *lab) distrust(ids ...string) {
	l.t.Helper()
	for _, id := range ids {
		said := store.Trust{Word: store.Distrusted, Reason: "test", Author: "ann", Since: l.now}
		if _, err := l.core.say(id, &said); err != nil {
			l.t.Fatal(err)
		}
	}
}

// wantBelieved has each address checked by as many checkers that are believed, and
// by as many others.
func (l *lab) wantBelieved(addresses []string, believed, others int) {
	l.t.Helper()
	for _, address := range addresses {
		who := l.checking(address)
		believe := slices.DeleteFunc(slices.Clone(who), l.core.disbelieved)
		if len(believe) != believed || len(who) != believed+others {
			l.t.Errorf("%s is checked by %v, of whom %v are believed, want %d and %d others", address, who, believe, believed, others)
		}
	}
}

// TestADoubtedCheckerIsReplacedEverywhere while it goes on checking what it had, so
// that it can be seen to be right again; then all is as it was.
func TestADoubtedCheckerIsReplacedEverywhere(t *testing.T) {
	const doubted = "c1b"
	for _, how := range []struct {
		name       string
		begin, end func(l *lab, addresses []string)
	}{
		{name: "quarantined", begin: func(l *lab, addresses []string) {
			l.cutOff(addresses, func(id string) bool { return id == doubted })
		}, end: func(l *lab, _ []string) { l.reconnectAll() }},
		{name: "distrusted", begin: func(l *lab, _ []string) { l.distrust(doubted) }, end: func(l *lab, _ []string) { l.core.unsay(doubted, "ann") }},
		{name: "its stream begins anew", begin: func(l *lab, _ []string) {
			l.distrust(doubted)
			l.pass(10 * time.Second)
			l.join(doubted)
		}, end: func(l *lab, _ []string) { l.core.unsay(doubted, "ann") }},
	} {
		t.Run(how.name, func(t *testing.T) {
			l, addresses := fleetOf(t, 8, 60)
			transitions, digest, plan := len(l.transitions), l.core.planner.Digest(), maps.Clone(l.plan)
			has := slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return !slices.Contains(l.checking(a), doubted) })
			hasNot := slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return slices.Contains(has, a) })
			how.begin(l, addresses)
			l.pass(30 * time.Second)
			l.wantBelieved(has, 3, 1)
			l.wantBelieved(hasNot, 3, 0)
			if !maps.EqualFunc(l.plan, plan, slices.Equal) {
				t.Errorf("substitutes are stored: %v, and before %v", l.plan, plan)
			}
			how.end(l, addresses)
			l.pass(70 * time.Second) // longer than any handover
			l.wantBelieved(addresses, 3, 0)
			if l.core.planner.Digest() != digest {
				t.Error("the plan is not what it was")
			}
			l.wantTransitions(transitions)
		})
	}
}

// covered counts checkers by how far they are replaced.
func (l *lab) covered() (least, full int) {
	for _, known := range l.core.checkers {
		switch known.cover {
		case leastCover:
			least++
		case fullCover:
			full++
		}
	}
	return least, full
}

// TestManyDoubtedAreReplacedAFewAtATime: where too few believed checkers would be
// left all of them are at once, the rest as silent checkers are.
func TestManyDoubtedAreReplacedAFewAtATime(t *testing.T) {
	l, _ := fleetOf(t, 200, 1000)
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprintf("c%d%c", i, 'a'+i%3))
	}
	l.distrust(ids...)
	for _, want := range [][2]int{{30, 10}, {20, 20}, {10, 30}, {0, 40}} {
		l.core.tick(l.now)
		if least, full := l.covered(); least != want[0] || full != want[1] {
			t.Errorf("%d are replaced, %d of them everywhere, want %v", least+full, full, want)
		}
		l.pass(grace + report)
	}
}

// TestNobodyIsReplacedEverywhereWhileHalfAreAway: what is wrong with half of the
// fleet has one cause, and moves nothing more.
func TestNobodyIsReplacedEverywhereWhileHalfAreAway(t *testing.T) {
	lose := func(l *lab, ids []string) {
		for _, id := range ids {
			l.lose(id)
		}
	}
	silence := func(l *lab, ids []string) {
		for _, id := range ids {
			l.core.silent[id] = &mute{}
		}
	}
	for _, test := range []struct {
		name string
		away func(l *lab, ids []string)
		many int
		want cover
	}{
		{"some lost", lose, 2, fullCover}, {"half lost", lose, 3, leastCover},
		{"some silent", silence, 2, fullCover}, {"half silent", silence, 3, leastCover},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, _ := fleetOf(t, 8, 60)
			all := slices.Sorted(maps.Keys(l.core.checkers))
			test.away(l, all[1:1+test.many])
			l.distrust(all[0])
			l.core.tick(l.now)
			if got := l.core.checkers[all[0]].cover; got != test.want {
				t.Errorf("it is replaced %d, want %d", got, test.want)
			}
			clear(l.core.silent)
			l.pass(2 * grace)
			if got := l.core.checkers[all[0]].cover; got != fullCover {
				t.Errorf("when the others report or are given up it is replaced %d", got)
			}
		})
	}
}

// TestThatSubstitutesAreHeldBackIsToldOnce and that it is over, whether the others
// are back or nobody is doubted any more.
func TestThatSubstitutesAreHeldBackIsToldOnce(t *testing.T) {
	l, _ := fleetOf(t, 8, 60)
	var log strings.Builder
	l.core.log = zerolog.New(&log)
	all := slices.Sorted(maps.Keys(l.core.checkers))
	told := func(what string, ticks, begins, ends int) {
		t.Helper()
		for range ticks {
			l.core.doubtStirred = true
			l.core.tick(l.now)
		}
		b, e := strings.Count(log.String(), `"event":"doubted_held"`), strings.Count(log.String(), `"event":"doubted_held_over"`)
		if b != begins || e != ends {
			t.Errorf("%s: told %d times that they are held back and %d times that it is over, want %d and %d:\n%s", what, b, e, begins, ends, &log)
		}
		log.Reset()
	}
	mute := func(ids ...string) {
		clear(l.core.silent)
		for _, id := range ids {
			l.core.silent[id] = &mute{}
		}
	}
	mute(all[1:4]...)
	told("nobody is doubted", 5, 0, 0)
	l.distrust(all[0])
	told("half are away", 5, 1, 0)
	mute()
	told("they are back", 5, 0, 1)
	mute(all[1:4]...)
	told("away again, but it has its substitutes", 5, 0, 0)
	l.distrust(all[4])
	told("and another is doubted", 5, 1, 0)
	l.core.unsay(all[4], "ann")
	told("believed again", 1, 0, 1)
	mute()
	l.distrust(all[4:6]...)
	told("a few at a time", 5, 0, 0)
}

// TestSubstitutesWaitForSettling: after a start nobody is replaced until it is known
// who is back.
func TestSubstitutesWaitForSettling(t *testing.T) {
	l, addresses := fleetOf(t, 8, 60)
	l.distrust("c1b")
	l.pass(10 * time.Second)
	all := slices.Sorted(maps.Keys(l.core.checkers))
	l.restart()
	l.serve(web("web", addresses...))
	l.join(all...)
	l.pass(settle - report)
	if least, full := l.covered(); least+full > 0 {
		t.Error("it is replaced while hdsd settles")
	}
	l.pass(10 * time.Second)
	if n := l.core.planner.Stats().Substitutes; n == 0 || n != l.core.planner.Load("c1b") {
		t.Errorf("%d endpoints have substitutes, and c1b has %d", n, l.core.planner.Load("c1b"))
	}
}
