//go:build !race || soak

package coordinator

import (
	"maps"
	"slices"
	"testing"
	"time"

	"hdsd/log"
)

// distrust distrusts checkers as an operator.
func (l *lab) distrust(ids ...string) {
	l.t.Helper()
	for _, id := range ids {
		trust := log.Trust{Level: log.Distrusted, Reason: "test", Author: "ann", Since: l.now}
		l.setTrust(id, &trust)
	}
}

// wantBelieved wants each address checked by this many believed checkers, and by this
// many others.
func (l *lab) wantBelieved(addresses []string, believed, others int) {
	l.t.Helper()
	for _, address := range addresses {
		who := l.checkersOf(address)
		believe := slices.DeleteFunc(slices.Clone(who), l.isDoubted)
		if len(believe) != believed || len(who) != believed+others {
			l.t.Errorf("%s is checked by %v, of whom %v are believed, want %d and %d others", address, who, believe, believed, others)
		}
	}
}

// TestDoubtedCheckerGetsSubstitutes covers a doubted checker that continues, so that hdsd notices when it is
// right again. The plan returns then.
func TestDoubtedCheckerGetsSubstitutes(t *testing.T) {
	const doubted = "c1b"
	for _, how := range []struct {
		name       string
		begin, end func(l *lab, addresses []string)
	}{
		{name: "quarantined", begin: func(l *lab, addresses []string) {
			l.cutOff(addresses, func(id string) bool { return id == doubted })
		}, end: func(l *lab, _ []string) { l.reconnectAll() }},
		{name: "distrusted", begin: func(l *lab, _ []string) { l.distrust(doubted) }, end: func(l *lab, _ []string) { l.clearTrustOf(doubted) }},
		{name: "its stream begins anew", begin: func(l *lab, _ []string) {
			l.distrust(doubted)
			l.pass(10 * time.Second)
			l.join(doubted)
		}, end: func(l *lab, _ []string) { l.clearTrustOf(doubted) }},
	} {
		t.Run(how.name, func(t *testing.T) {
			l, addresses := fleetOf(t, 8, 60)
			transitions, digest, plan := len(l.transitions), l.digest(), maps.Clone(l.plan)
			has := slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return !slices.Contains(l.checkersOf(a), doubted) })
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
			if l.digest() != digest {
				t.Error("the plan is not what it was")
			}
			l.wantTransitions(transitions)
		})
	}
}

// TestSubstitutesWaitForSettling covers a start: hdsd gives no substitutes before the checkers had time to
// return.
func TestSubstitutesWaitForSettling(t *testing.T) {
	l, addresses := fleetOf(t, 8, 60)
	l.distrust("c1b")
	l.pass(10 * time.Second)
	all := l.members()
	l.restart()
	l.serve(web("web", addresses...))
	l.join(all...)
	l.pass(settle - report)
	if l.extraCheckers(3, addresses) > 0 {
		t.Error("it is replaced while hdsd settles")
	}
	l.pass(10 * time.Second)
	if n := l.extraCheckers(3, addresses); n == 0 || n != l.load("c1b") {
		t.Errorf("%d endpoints have substitutes, and c1b has %d", n, l.load("c1b"))
	}
}
