package aggregate_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/aggregate"
	"hdsd/health"
)

// TestMassFailure: a down that all votes agree on is never held back. A contested one
// happens after the wait if the votes stay. And before a wait is over, contested votes
// take at most half of the cluster down in a round.
func TestMassFailure(t *testing.T) {
	const hold = 5 * time.Second
	checkers := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 6).Draw(t, "size")
		b := newBench(size, rapid.Bool().Draw(t, "zoned"), aggregate.Rule{MassHold: hold}, checkers...)
		votes := map[string]health.Status{}
		since := map[health.EndpointID]time.Duration{} // when the majority became down
		raised, raisedAt := false, time.Duration(0)
		look := func(effects aggregate.Effects) {
			contested := 0
			for _, c := range effects.Changes {
				ups := 0
				for _, o := range c.Observations {
					if o.Disbelieved == "" && o.Status.Up() {
						ups++
					}
				}
				if c.To.Down() && ups > 0 {
					contested++
				}
			}
			for _, alarm := range effects.MassFailures {
				if raised != alarm.Over {
					t.Fatalf("twice the same: %+v", alarm)
				}
				raised, raisedAt = !alarm.Over, b.now
			}
			if contested > 0 && raised && b.now < raisedAt+hold {
				t.Fatalf("%d contested downs at %s, but the alarm was raised at %s", contested, b.now, raisedAt)
			}
			if 2*contested > size && contested > 1 && !raised {
				t.Fatalf("%d of %d down at once without an alarm", contested, size)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			for pause := time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond; pause > 0; pause -= 500 * time.Millisecond {
				b.now += min(pause, 500*time.Millisecond)
				for _, c := range checkers {
					look(b.Report(epoch.Add(b.now), c, nil))
				}
			}
			checker := rapid.SampledFrom(checkers).Draw(t, "checker")
			var report []health.Vote
			for id := range health.EndpointID(size) {
				if rapid.IntRange(0, 2).Draw(t, "votes") > 0 {
					s := rapid.SampledFrom([]health.Status{health.Healthy, health.Unhealthy}).Draw(t, "status")
					votes[fmt.Sprint(checker, id)] = s
					report = append(report, health.Vote{Endpoint: id, Status: s, HTTPStatusCode: 503})
				}
			}
			look(b.Report(epoch.Add(b.now), checker, report))
			for id := range health.EndpointID(size) {
				downs := 0
				for _, c := range checkers {
					if votes[fmt.Sprint(c, id)] == health.Unhealthy {
						downs++
					}
				}
				v := b.Verdict(id)
				if downs < 2 {
					delete(since, id)
				} else if _, ok := since[id]; !ok {
					since[id] = b.now
				}
				if downs == 3 && !v.Status.Down() || downs < 2 && v.Status.Down() {
					t.Fatalf("%d of 3 votes say down, but %d is %s: %s", downs, id, v.Status, v.Reason)
				}
				if at, ok := since[id]; ok && b.now-at > 2*hold && !v.Status.Down() {
					t.Fatalf("%d has a majority of down since %s, and it is %s: %s", id, at, b.now, v.Reason)
				}
			}
		}
	})
}
