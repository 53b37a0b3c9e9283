//go:build !race || soak

package store

import (
	"fmt"
	"testing"
	"time"

	"hdsd/health"
)

// flapping returns the n-th transition of an endpoint that changes all the time, with three votes.
func flapping(n, round int) health.Transition {
	e := endpoint(fmt.Sprintf("cluster-%05d", n*7919%1200), "zone-a", fmt.Sprintf("10.0.%d.%d:8080", n>>8&255, n&255))
	t := health.Transition{Endpoint: e, To: health.Healthy, Reason: "3 of 3 believed checkers say HEALTHY", Time: day.Add(time.Duration(round) * time.Second)}
	for i := range 3 {
		t.Observations = append(t.Observations, health.Observation{
			Checker: fmt.Sprintf("checker-%04d", (n+i)%1000), Status: health.Healthy, HTTPStatusCode: 200, Time: t.Time,
		})
	}
	return t
}

// flap has endpoints change four times, whenever the queue has room. It returns the most that was
// in use.
func flap(t *testing.T, s *Store, endpoints int) (most int64) {
	t.Helper()
	const rounds, batch = 4, 300
	for round := range rounds {
		for from := 0; from < endpoints; from += batch {
			some := make([]health.Transition, 0, batch)
			for n := range batch {
				some = append(some, flapping(from+n, round))
			}
			for s.Stats().Pending > 100_000 {
				moved := s.intake.moved()
				most = max(most, s.db.used.Load())
				if s.Stats().Pending > 100_000 {
					<-moved
				}
			}
			s.Append(some)
		}
	}
	flush(t, s)
	if stats := s.Stats(); stats.Committed != uint64(rounds*endpoints) || stats.Dropped != 0 || stats.LastError != nil {
		t.Errorf("%+v", stats)
	}
	return max(most, s.db.used.Load())
}

// TestAFloodKeepsToItsQuota: groups are no larger than what is left of the quota, so that they
// fit on the disk, and early pruning keeps up.
func TestAFloodKeepsToItsQuota(t *testing.T) {
	for megabytes, endpoints := range map[int64]int{8: 7_500, 16: 15_000} {
		t.Run(fmt.Sprint(megabytes), func(t *testing.T) {
			s := open(t, t.TempDir(), func(o *Options) {
				o.mapSize, o.MaxBytes, o.maxSize = 0, megabytes<<20, 192<<20
			})
			if most := flap(t, s, endpoints); most > megabytes<<20 {
				t.Errorf("%d bytes in use, of %d", most, megabytes<<20)
			}
		})
	}
}
