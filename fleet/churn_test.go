package fleet

import (
	"fmt"
	"testing"
	"time"

	"hdsd/health"
)

// worker is a checker that comes and goes.
func worker(i int) health.Checker {
	return health.Checker{ID: fmt.Sprintf("w%d", i), Locality: health.Locality{Region: "r", Zone: fmt.Sprint(i % 3)}}
}

// TestPlansAreBoundedUnderChurn: forty workers come and go every 5 ms for ten seconds.
func TestPlansAreBoundedUnderChurn(t *testing.T) {
	l := newLab(t, options(), 6, 600)
	plans := 0
	do := func(e Effects) {
		if e.Planned {
			plans++
		}
		l.do(e)
	}
	begin := l.now
	for step := range 2000 {
		w := worker(step % 40)
		if l.Connected(w.ID) {
			do(l.Disconnect(l.now, w.ID))
		} else {
			do(l.Connect(l.now, w))
		}
		if step%100 == 0 {
			for i := range 6 {
				do(l.Report(l.now, fmt.Sprintf("c%d", i), true))
			}
		}
		l.now = l.now.Add(5 * time.Millisecond)
		do(l.Tick(l.now, l.now))
		do(l.Dispatch(l.now))
	}
	l.wantInStep()
	if most := int(l.now.Sub(begin)/planEvery) + 1; plans > most || plans < most/2 {
		t.Errorf("%d plans in %v, want at most %d", plans, l.now.Sub(begin), most)
	}
}

// TestNobodyWaitsLongForAPlan: one that comes in the midst of others has its specifier
// when NextDeadline says.
func TestNobodyWaitsLongForAPlan(t *testing.T) {
	l := newLab(t, options(), 6, 600)
	for i := range 3 {
		l.do(l.Connect(l.now, worker(i)))
	}
	if l.sent["w0"] != 1 || l.sent["w1"] != 0 {
		t.Errorf("the first was sent %d specifiers, the second %d", l.sent["w0"], l.sent["w1"])
	}
	for until := l.now.Add(planEvery); l.sent["w1"] == 0; l.tick() {
		if l.now, _ = l.NextDeadline(); l.now.After(until) {
			t.Fatalf("the others wait for longer than %v", planEvery)
		}
	}
	if l.sent["w1"] != 1 || l.sent["w2"] != 1 || l.Part("w2").Endpoints == 0 {
		t.Errorf("they were sent %d and %d specifiers", l.sent["w1"], l.sent["w2"])
	}
}

// TestComingAndGoingInOnePlan leaves the plan as it was.
func TestComingAndGoingInOnePlan(t *testing.T) {
	l := newLab(t, options(), 6, 600)
	digest := l.Digest()
	l.lose("c0")
	l.join("c0")
	for range 5 { // all of it before the next plan
		l.do(l.Connect(l.now, worker(1)))
		l.lose("w1")
		l.lose("c3")
		l.join("c3")
	}
	l.pass(grace + 2*report)
	if l.Digest() != digest || len(l.Rows()) > 0 {
		t.Errorf("the plan is another")
	}
	l.wantInStep()
}
