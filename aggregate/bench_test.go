package aggregate_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// fleet is an aggregator with redundancy 3, as a plan by units gives it: each
// checker has runs of neighbouring endpoints.
type fleet struct {
	aggregator *aggregate.Aggregator
	names      []string
	votes      [][]health.Vote // by checker, all up
	now        time.Time
}

func newFleet(endpoints, checkers int) *fleet {
	const unit = 64
	f := &fleet{aggregator: aggregate.New(aggregate.Options{}), votes: make([][]health.Vote, checkers), now: epoch}
	for c := range checkers {
		f.names = append(f.names, fmt.Sprint("checker-", c))
	}
	for i := range endpoints {
		id := health.EndpointID(i)
		f.aggregator.Set(aggregate.Endpoint{ID: id, Timing: usual}, health.Verdict{Status: health.Healthy, Since: epoch})
		for r := range 3 {
			c := (i/unit*3 + r) % checkers
			f.aggregator.Assign(f.now, id, f.names[c])
			f.votes[c] = append(f.votes[c], health.Vote{Endpoint: id, Status: health.Healthy})
		}
	}
	f.now = f.now.Add(time.Second)
	for c, votes := range f.votes {
		f.aggregator.Report(f.now, f.names[c], votes)
	}
	return f
}

func BenchmarkUnchangedReport(b *testing.B) {
	f := newFleet(3000, 3)
	for b.Loop() {
		f.now = f.now.Add(time.Microsecond)
		f.aggregator.Report(f.now, f.names[0], nil)
	}
}

// BenchmarkChangedVote is one vote that changes in a report of 3,000, with
// the verdict decided anew; the verdict itself does not change.
func BenchmarkChangedVote(b *testing.B) {
	f := newFleet(3000, 3)
	votes := f.votes[0]
	turn := health.Unhealthy
	for b.Loop() {
		for i := range votes {
			votes[i].Status = turn
		}
		turn = health.Healthy + health.Unhealthy - turn
		f.aggregator.Report(f.now, f.names[0], votes)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(votes)), "ns/vote")
}

// BenchmarkSameVote is a report in full that says the same.
func BenchmarkSameVote(b *testing.B) {
	f := newFleet(3000, 3)
	for b.Loop() {
		f.aggregator.Report(f.now, f.names[0], f.votes[0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(f.votes[0])), "ns/vote")
}

// BenchmarkRound is one round of 3 million statuses: 1,000,000 endpoints with
// 3 checkers each out of 1,000. Steady: no checker has anything new. In full:
// each repeats all. Flips: 1 % of the endpoints go down and come back.
func BenchmarkRound(b *testing.B) {
	f := newFleet(1_000_000, 1000)
	b.Run("steady", func(b *testing.B) {
		for b.Loop() {
			f.now = f.now.Add(time.Second)
			for _, name := range f.names {
				f.aggregator.Report(f.now, name, nil)
			}
		}
	})
	b.Run("in full", func(b *testing.B) {
		for b.Loop() {
			for c, name := range f.names {
				f.aggregator.Report(f.now, name, f.votes[c])
			}
		}
	})
	b.Run("flips", func(b *testing.B) {
		changes, turn := 0, health.Unhealthy
		for b.Loop() {
			for c, name := range f.names {
				some := f.votes[c][:len(f.votes[c])/100]
				for i := range some {
					some[i].Status = turn
				}
				changes += len(f.aggregator.Report(f.now, name, some))
			}
			turn = health.Healthy + health.Unhealthy - turn
		}
		b.ReportMetric(float64(changes)/float64(b.N), "changes/op")
	})
}

// BenchmarkSilence is a checker with 3,000 endpoints that falls silent, is
// awaited in vain and comes back.
func BenchmarkSilence(b *testing.B) {
	f := newFleet(3000, 3)
	for b.Loop() {
		f.now = f.now.Add(4 * time.Second)
		f.aggregator.Tick(f.now)
		f.now = f.now.Add(6 * time.Second)
		f.aggregator.Tick(f.now)
		f.aggregator.Report(f.now, f.names[0], nil)
	}
}

func BenchmarkReconnect(b *testing.B) {
	f := newFleet(3000, 3)
	for b.Loop() {
		f.now = f.now.Add(100 * time.Millisecond)
		f.aggregator.Connected(f.now, health.Checker{ID: f.names[0]})
		f.aggregator.Report(f.now, f.names[0], f.votes[0])
	}
}

// BenchmarkStart is what a start costs: a million endpoints known and
// assigned, every checker's first report; and what that takes in memory.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f := newFleet(1_000_000, 1000)
		f.now = f.now.Add(10 * time.Second)
		start := time.Now()
		f.aggregator.Tick(f.now)
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/tick")
		f.votes = nil
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/3e6, "B/vote")
		runtime.KeepAlive(f)
	}
}
