package aggregate_test

import (
	"testing"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// newBlindness returns an aggregator with two endpoints in two clusters, and a
// function that lets a and b say down of both at a moment, and c say up.
func newBlindness() (*aggregate.Aggregator, func(after time.Duration)) {
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
	return a, func(after time.Duration) {
		say(after, "c", health.Healthy)
		say(after, "a", health.Timeout)
		say(after, "b", health.Timeout)
	}
}

// TestMissesCountFromTheStream: a checker's missed outages count from the beginning
// of its stream, even where it says the same as before.
func TestMissesCountFromTheStream(t *testing.T) {
	a, down := newBlindness()
	down(time.Second)
	a.Connected(epoch.Add(3*time.Second), health.Checker{ID: "c"})
	for after := 3 * time.Second; after < 7*time.Second; after += 500 * time.Millisecond {
		down(after)
		if why := a.BlindReason("c"); why != "" {
			t.Fatalf("%s after the outages began, and sooner after the stream did, it is blind: %s", after-time.Second, why)
		}
	}
	if down(7500 * time.Millisecond); a.BlindReason("c") == "" {
		t.Error("it is not blind")
	}
}

// TestEffectsAreDue: effects of a call that only records are due at once, even where
// they concern no endpoint, and are returned only once.
func TestEffectsAreDue(t *testing.T) {
	a, down := newBlindness()
	a.Connected(epoch, health.Checker{ID: "c"})
	for after := time.Second; a.BlindReason("c") == ""; after += 500 * time.Millisecond {
		down(after)
	}
	now := epoch.Add(time.Hour)
	a.Unassign(now, 0, "c")
	a.Unassign(now, 1, "c")
	a.Tick(now)
	a.SetTrust("c", aggregate.Trusted, "an operator knows better")
	if at, ok := a.NextDeadline(); !ok || !at.Equal(now) {
		t.Fatalf("next deadline %s, %v; want %s", at, ok, now)
	}
	if effects := a.Tick(now); len(effects.Blindness) != 1 || effects.Blindness[0].Blind {
		t.Errorf("a tick gives %+v", effects)
	}
	if effects := a.Tick(now); !effects.Empty() {
		t.Errorf("the next tick gives %+v", effects)
	}
}
