package aggregate_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/aggregate"
	"hdsd/health"
)

// TestDoubtEndsByTheWholeReview: where a vote adds to what contradicts a checker, and
// doubt of its path then excuses it, the end of its doubt is not put off in between.
func TestDoubtEndsByTheWholeReview(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.Bool().Draw(t, "nothing is drawn")
		w := newTwins(t)
		assign := func(id health.EndpointID, checker string) {
			w.aggregator.Assign(w.wall(), id, checker)
			w.oracle.assign(w.now, id, checker)
		}
		distrust := func(checkers ...string) {
			for _, c := range checkers {
				w.aggregator.SetTrust(c, aggregate.Distrusted, "because")
				w.oracle.setTrust(c, aggregate.Distrusted)
			}
		}
		say := func(checker string, votes ...health.Vote) {
			w.compare(w.aggregator.Report(w.wall(), checker, votes), w.oracle.report(w.now, checker, votes))
		}
		assign(0, "c5")
		w.aggregator.Connected(w.wall(), health.Checker{ID: "c0"})
		w.oracle.connected(w.now, health.Checker{ID: "c0"})
		assign(4, "c1")
		distrust("c0")
		for _, status := range []health.Status{health.Healthy, health.Unhealthy} {
			for _, c := range []string{"c0", "c1", "c2", "c3", "c4", "c5", "c6"} {
				vote := health.Vote{Status: status, HTTPStatusCode: 500}
				if c == "c5" {
					vote.Status = health.Healthy
				}
				say(c, vote, health.Vote{Endpoint: 4, Status: vote.Status, HTTPStatusCode: 500})
			}
		}
		assign(4, "c1")
		distrust("c2")
		say("c1", health.Vote{Status: health.Unhealthy}, health.Vote{Endpoint: 4, Status: health.Healthy})
		for _, c := range []string{"c4", "c6"} {
			say(c, health.Vote{Endpoint: 4, Status: health.Healthy})
		}
		distrust("c4", "c5", "c6")
		w.compare(w.aggregator.Tick(w.wall()), w.oracle.tick(w.now))
		w.now += time.Millisecond
		say("c0")
	})
}
