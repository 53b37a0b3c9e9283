//go:build !race || soak

package coordinator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hdsd/machine"
)

// newHandoverLab returns a lab in which one checker had everything and another has just joined,
// and the addresses that move to it.
func newHandoverLab(t *testing.T) (l *lab, moved []string) {
	l = newLab(t)
	l.rules.Assignment.Redundancy = 1
	var addresses []string
	for i := range 600 {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d:80", i/250, 1+i%250))
	}
	l.serve(web("web", addresses...))
	l.join("ca")
	l.pass(settle + 3*report)
	l.join("da")
	l.step(machine.Tick{})
	for _, address := range addresses {
		if slices.Contains(l.checkersOf(address), "da") {
			moved = append(moved, address)
		}
	}
	if len(moved) < 100 {
		t.Fatalf("only %d endpoints moved", len(moved))
	}
	return l, moved
}

func TestHandoverLastsUntilBelief(t *testing.T) {
	l, moved := newHandoverLab(t)
	both, next := []string{"ca", "da"}, []string{"da"}
	for _, address := range moved {
		if who := l.checkersOf(address); !slices.Equal(who, both) {
			t.Fatalf("%s is checked by %v as it moves, want both", address, who)
		}
	}
	if n := l.believed("web", moved[0]); n != 1 {
		t.Errorf("%d are believed as it moves, want the one before", n)
	}
	l.pass(2 * report)
	for _, address := range moved[1:] {
		if who := l.checkersOf(address); !slices.Equal(who, next) {
			t.Fatalf("%s is checked by %v after it has moved, want the next", address, who)
		}
	}
	if stored := len(l.plan["ca"]) + len(l.plan["da"]); stored != 600 {
		t.Errorf("%d endpoints are in the stored plan, want 600", stored)
	}
}

func TestHandoverEndsWithOldChecker(t *testing.T) {
	l, moved := newHandoverLab(t)
	l.lose("ca")
	l.join("ca")
	l.step(machine.Tick{})
	if who := l.checkersOf(moved[0]); !slices.Equal(who, []string{"da"}) {
		t.Errorf("%s is checked by %v after the one before came back", moved[0], who)
	}
}

func TestHandoverEndsWithEndpoint(t *testing.T) {
	l, _ := newHandoverLab(t)
	l.setClusters()
	l.pass(report)
	if n := len(l.checkers["ca"].spec.Order); n > 0 {
		t.Errorf("ca still checks %d endpoints", n)
	}
}

func TestHandoverEndsDespiteSilence(t *testing.T) {
	l, moved := newHandoverLab(t)
	l.checkers["da"].rejects = true
	l.pass(time.Minute - report)
	if who := l.checkersOf(moved[0]); !slices.Contains(who, "ca") {
		t.Errorf("%s is checked by %v before the time is over", moved[0], who)
	}
	l.pass(2 * report)
	if who := l.checkersOf(moved[0]); slices.Contains(who, "ca") {
		t.Errorf("%s is still checked by %v when the time is over", moved[0], who)
	}
}
