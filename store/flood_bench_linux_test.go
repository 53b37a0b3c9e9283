package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hdsd/health"
)

const (
	floodClusters = 3_000
	floodSize     = 100 // endpoints of each
	floodBatch    = 300 // verdicts that one report leads to
)

// flood returns the first verdicts on the endpoints of many clusters, three votes each, in
// the order in which checkers report them: each has endpoints of any cluster.
func flood() []health.Transition {
	all := make([]health.Transition, 0, floodClusters*floodSize)
	for c := range floodClusters {
		for i := range floodSize {
			e := endpoint(fmt.Sprintf("cluster-%05d", c), "zone-a", fmt.Sprintf("10.%d.%d.%d:8080", c>>8, c&255, i))
			all = append(all, health.Transition{Endpoint: e, To: health.Healthy, Reason: "3 of 3 believed checkers say HEALTHY"})
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		t := &all[i]
		t.Time = day.Add(time.Duration(i/floodBatch) * time.Millisecond)
		for n := range 3 {
			t.Observations = append(t.Observations, health.Observation{
				Checker: fmt.Sprintf("checker-%04d", random.IntN(1000)), Status: health.Healthy, HTTPStatusCode: 200,
				Time: t.Time.Add(-time.Duration(n) * time.Millisecond),
			})
		}
	}
	return all
}

// BenchmarkFlood writes the first verdicts of 300,000 endpoints while they come faster than
// the disk takes them: a quarter of a million waits.
func BenchmarkFlood(b *testing.B) {
	all := flood()
	var spent time.Duration
	var written int64
	for b.Loop() {
		s := open(b, b.TempDir(), func(o *Options) { o.mapSize, o.MaxPending = 0, len(all) })
		before := processTime(b)
		for i := 0; i < len(all); i += floodBatch {
			s.Append(all[i:min(i+floodBatch, len(all))])
		}
		flush(b, s)
		spent += processTime(b) - before
		stats := s.db.bolt.Stats().TxStats
		written += stats.GetPageAlloc()
		if got := s.Stats(); got.Committed != uint64(len(all)) || got.Dropped > 0 {
			b.Fatalf("%+v", got)
		}
		b.ReportMetric(float64(s.db.used.Load())/float64(len(all)), "file-B/verdict")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	verdicts := float64(b.N * len(all))
	b.ReportMetric(float64(spent.Microseconds())/verdicts, "cpu-µs/verdict")
	b.ReportMetric(float64(written)/verdicts, "written-B/verdict")
}

// processTime returns what this process has spent.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
