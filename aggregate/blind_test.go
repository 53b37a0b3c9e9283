package aggregate_test

import (
	"testing"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// TestMissesBeginAnew: how long a checker has missed outages is counted from when its
// stream began, even where it says the same before anything else happens.
func TestMissesBeginAnew(t *testing.T) {
	a := aggregate.New(aggregate.Options{})
	say := func(after time.Duration, checker string, s health.Status) {
		a.Report(epoch.Add(after), checker, []health.Vote{{Endpoint: 0, Status: s}, {Endpoint: 1, Status: s}})
	}
	for id, cluster := range []string{"web", "pay"} {
		a.Set(aggregate.Endpoint{ID: health.EndpointID(id), Timing: usual, Cluster: cluster}, health.Verdict{})
		for _, checker := range []string{"a", "b", "c"} {
			a.Assign(epoch, health.EndpointID(id), checker)
			say(0, checker, health.Healthy)
		}
	}
	down := func(after time.Duration) {
		say(after, "c", health.Healthy)
		say(after, "a", health.Timeout)
		say(after, "b", health.Timeout)
	}
	down(time.Second)
	a.Connected(epoch.Add(3*time.Second), health.Checker{ID: "c"})
	for after := 3 * time.Second; after < 7*time.Second; after += 500 * time.Millisecond {
		down(after)
		if why := a.Blind("c"); why != "" {
			t.Fatalf("%s after the outages began, and sooner after the stream did, it is blind: %s", after-time.Second, why)
		}
	}
	if down(7500 * time.Millisecond); a.Blind("c") == "" {
		t.Error("it is not blind")
	}
}
