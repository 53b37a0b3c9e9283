package store

import (
	"testing"
	"time"

	"hdsd/health"
)

// TestWhatIsWrittenIsNotKept: after a burst of transitions, the queue keeps neither them
// nor the room that they took.
func TestWhatIsWrittenIsNotKept(t *testing.T) {
	in := newIntake(1 << 20)
	for range 3 * groupSize / 2 {
		in.append([]health.Transition{{Reason: "2 of 3 checkers say HEALTHY", Observations: []health.Observation{{Checker: "a"}}}}, time.Now)
	}
	for range 2 {
		g := in.take()
		in.committed(g)
		for i := range g.transitions {
			if left := &g.transitions[i]; left.Reason != "" || left.Observations != nil {
				t.Fatalf("transition %d of a group that is on disk is kept: %v", i, left)
			}
		}
	}
	if in.take() != nil {
		t.Fatal("a third group")
	}
	if n := cap(in.pending); n != 0 {
		t.Errorf("room for %d transitions is kept", n)
	}
}
