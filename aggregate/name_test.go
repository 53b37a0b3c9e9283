package aggregate_test

import (
	"strings"
	"testing"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// TestADownKeepsItsName while the votes alternate between TIMEOUT and UNHEALTHY, as of a gRPC service that
// hangs; and takes the other that lasts. To come back up waits for nothing of that.
func TestADownKeepsItsName(t *testing.T) {
	now := time.Unix(0, 0)
	a := aggregate.New(aggregate.Options{})
	a.Set(aggregate.Endpoint{ID: 1, Timing: usual}, health.Verdict{Status: health.Healthy, Since: now})
	checkers := []string{"a", "b", "c"}
	say := func(status health.Status) (all []aggregate.Change) {
		now = now.Add(time.Second)
		for _, checker := range checkers {
			effects := a.Report(now, checker, []health.Vote{{Endpoint: 1, Status: status}})
			all = append(all, effects.Changes...)
		}
		return all
	}
	for _, checker := range checkers {
		a.Connected(now, health.Checker{ID: checker})
		a.Assign(now, 1, checker)
	}
	for range 20 {
		say(health.Healthy)
	}
	if changes := say(health.Timeout); len(changes) != 1 || changes[0].To != health.Timeout {
		t.Fatalf("an outage is %+v", changes)
	}
	for i := range 300 { // three to one
		status := health.Timeout
		if i%4 > 0 {
			status = health.Unhealthy
		}
		if changes := say(status); len(changes) > 0 {
			t.Fatalf("round %d: %+v", i, changes)
		}
	}
	say(health.Timeout)
	rounds := 0
	for ; rounds < 30; rounds++ {
		changes := say(health.Unhealthy)
		if reason := a.Verdict(1).Reason; len(changes) == 0 && rounds == 3 && !strings.HasSuffix(reason, "whether that lasts shows soon; last verdict TIMEOUT") {
			t.Errorf("meanwhile the reason is %q", reason)
		}
		if len(changes) > 0 {
			break
		}
	}
	if rounds < 5 || rounds > 12 {
		t.Errorf("another name is taken after %d rounds", rounds)
	}
	say(health.Timeout)
	if changes := say(health.Healthy); len(changes) != 1 || changes[0].To != health.Healthy {
		t.Errorf("to come back up: %+v", changes)
	}
}
