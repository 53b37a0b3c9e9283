package tally_test

import (
	"fmt"
	"slices"
	"testing"

	"hdsd/coordinator/tally"
	"hdsd/health"
	"hdsd/notify"
)

// BenchmarkFleet is a fleet of 100,000 endpoints in 1,000 clusters: at its start, and when all
// of it goes down and comes back at once, with what a receiver makes of it.
func BenchmarkFleet(b *testing.B) {
	clusters := make([][]tally.Endpoint, 1000)
	for c := range clusters {
		for i := range 100 {
			clusters[c] = append(clusters[c], endpoint(fmt.Sprint("c", c), []string{"a", "b", "c"}[i%3], i, health.Healthy))
		}
	}
	start := func() *tally.Tally {
		t := tally.New()
		for c := range clusters {
			t.SetCluster(fmt.Sprint("c", c), 100, slices.Values(clusters[c]))
		}
		t.Take()
		return t
	}
	turn := func(t *tally.Tally, to health.Status) []notify.Change {
		for c := range clusters {
			for i := range clusters[c] {
				clusters[c][i].Status = to
				t.SetEndpoint(&clusters[c][i])
			}
		}
		return t.Take().Conditions
	}
	b.Run("start", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			start()
		}
	})
	b.Run("down and up", func(b *testing.B) {
		t := start()
		b.ReportAllocs()
		for b.Loop() {
			turn(t, health.Unhealthy)
			turn(t, health.Healthy)
		}
	})
	b.Run("told", func(b *testing.B) {
		t := start()
		down := turn(t, health.Unhealthy)
		up := turn(t, health.Healthy)
		told := 0
		for b.Loop() {
			r := notify.NewReceiver(notify.Filter{}, nil)
			told = len(r.Apply(noon.Add(1e12), down)) + len(r.Apply(noon.Add(1e12), up))
		}
		b.ReportMetric(float64(told), "notices")
	})
}
