package aggregate_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// fleet is an aggregator with redundancy 3 and seats as a plan by units assigns them.
// A checker gets unit after unit, each in an order of its own, and reports them in
// the order of its specifier.
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
		f.aggregator.Set(aggregate.Endpoint{ID: health.EndpointID(i), Timing: usual}, health.Verdict{Status: health.Healthy, Since: epoch})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, u := range random.Perm((endpoints + unit - 1) / unit) {
		size := min(unit, endpoints-u*unit)
		for _, i := range random.Perm(size) {
			for r := range 3 {
				c := (u*3 + r) % checkers
				id := health.EndpointID(u*unit + i)
				f.aggregator.Assign(f.now, id, f.names[c])
				f.votes[c] = append(f.votes[c], health.Vote{Endpoint: id, Status: health.Healthy})
			}
		}
	}
	f.now = f.now.Add(time.Second)
	for c, votes := range f.votes {
		slices.SortFunc(votes, func(v, w health.Vote) int { return cmp.Compare(v.Endpoint, w.Endpoint) })
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

// BenchmarkChangedVote is a report of 3,000 votes that all change. Each verdict is
// decided anew and stays the same.
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

// BenchmarkSameVote is a full report without a changed vote.
func BenchmarkSameVote(b *testing.B) {
	f := newFleet(3000, 3)
	for b.Loop() {
		f.aggregator.Report(f.now, f.names[0], f.votes[0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(f.votes[0])), "ns/vote")
}

// BenchmarkRound is one round of 3 million statuses: 1,000,000 endpoints with
// 3 checkers each out of 1,000. Steady: no vote changes. In full: each checker
// repeats all votes. Flips: 1 % of the endpoints, anywhere, go down and come back.
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
		flips := f.some(100)
		for b.Loop() {
			for c, name := range f.names {
				some := flips[c]
				for i := range some {
					some[i].Status = turn
				}
				changes += len(f.aggregator.Report(f.now, name, some).Changes)
			}
			turn = health.Healthy + health.Unhealthy - turn
		}
		b.ReportMetric(float64(changes)/float64(b.N), "changes/op")
	})
}

// some returns the votes on one in so many endpoints, by checker.
func (f *fleet) some(in int) [][]health.Vote {
	some := make([][]health.Vote, len(f.votes))
	for c, votes := range f.votes {
		for _, v := range votes {
			if rand.New(rand.NewPCG(uint64(v.Endpoint), 0)).IntN(in) == 0 {
				some[c] = append(some[c], v)
			}
		}
	}
	return some
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

// BenchmarkStart is a start: it sets and assigns a million endpoints, and applies every
// checker's first report. It also measures the memory that this takes.
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

// BenchmarkPaths is the matrix of 1,000 zones of checkers and 10 zones of endpoints, one of
// which none of the others reaches.
func BenchmarkPaths(b *testing.B) {
	const zones, each = 10, 300
	a, now := aggregate.New(aggregate.Options{}), epoch
	for i := range zones * each {
		zone := health.Locality{Zone: fmt.Sprint("z", i/each)}
		a.Set(aggregate.Endpoint{ID: health.EndpointID(i), Zone: zone, Timing: usual}, health.Verdict{Status: health.Healthy, Since: now})
	}
	say := func(c int, cut health.Status) {
		var votes []health.Vote
		for i := c % each; i < zones*each; i += each {
			votes = append(votes, health.Vote{Endpoint: health.EndpointID(i), Status: health.Healthy})
		}
		if c >= zones {
			votes[0].Status = cut
		}
		a.Report(now, fmt.Sprint("c", c), votes)
	}
	for c := range 1000 {
		a.Connected(now, health.Checker{ID: fmt.Sprint("c", c), Locality: health.Locality{Zone: fmt.Sprint("z", c)}})
		for i := c % each; i < zones*each; i += each {
			a.Assign(now, health.EndpointID(i), fmt.Sprint("c", c))
		}
		say(c, health.Healthy)
	}
	for i := range each { // its own checker sees all of the zone
		a.Assign(now, health.EndpointID(i), "c0")
		a.Report(now, "c0", []health.Vote{{Endpoint: health.EndpointID(i), Status: health.Healthy}})
	}
	for range 60 {
		now = now.Add(time.Second)
		a.Tick(now)
		for c := range 1000 {
			say(c, health.Timeout)
		}
	}
	var paths []aggregate.Path
	for b.Loop() {
		paths = a.Paths()
	}
	cut := 0
	for _, p := range paths {
		if p.CutReason != "" {
			cut++
		}
	}
	b.ReportMetric(float64(len(paths)), "paths")
	b.ReportMetric(float64(cut), "cut")
}
