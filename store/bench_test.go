package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hdsd/health"
)

const (
	benchEndpoints = 100_000
	benchHistory   = 100_000
)

func benchTransition(random *rand.Rand, n int) health.Transition {
	i := random.IntN(benchEndpoints)
	tr := flip(endpoint(fmt.Sprintf("cluster-%d", i/50), "a", fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255)), n)
	tr.Reason = "3 of 3 believed checkers say " + tr.To.String()
	return tr
}

// fill makes a history of some size.
func fill(b *testing.B, size int) *Store {
	b.Helper()
	s := open(b, b.TempDir(), func(o *Options) { o.mapSize = 0 })
	random := rand.New(rand.NewPCG(1, 1))
	for n := range size {
		s.Append([]health.Transition{benchTransition(random, n)})
		if n%100_000 == 99_999 {
			flush(b, s)
		}
	}
	flush(b, s)
	return s
}

// BenchmarkAppend writes transitions of random endpoints, disk included.
func BenchmarkAppend(b *testing.B) {
	s := open(b, b.TempDir(), func(o *Options) { o.mapSize = 0 })
	random := rand.New(rand.NewPCG(1, 1))
	n := 0
	for b.Loop() {
		s.Append([]health.Transition{benchTransition(random, n)})
		if n++; n%100_000 == 0 {
			flush(b, s)
		}
	}
	flush(b, s)
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "transitions/s")
}

// BenchmarkCommit writes one transition at a time, without the wait for its group.
func BenchmarkCommit(b *testing.B) {
	s := fill(b, 10_000)
	random := rand.New(rand.NewPCG(2, 2))
	n := 0
	for b.Loop() {
		s.Append([]health.Transition{benchTransition(random, n)})
		flush(b, s)
		n++
	}
}

// BenchmarkState reads the state of 100,000 endpoints.
func BenchmarkState(b *testing.B) {
	s := open(b, b.TempDir(), func(o *Options) { o.mapSize = 0 })
	for i := range benchEndpoints {
		tr := flip(endpoint(fmt.Sprintf("cluster-%d", i/50), "a", fmt.Sprint("10.0.0.1:", i)), i)
		tr.Reason = "3 of 3 believed checkers say " + tr.To.String()
		s.Append([]health.Transition{tr})
	}
	flush(b, s)
	b.ResetTimer()
	for b.Loop() {
		if all := stateOf(b, s).Current; len(all) != benchEndpoints {
			b.Fatal(len(all))
		}
	}
}

// BenchmarkOpen opens a history and reads every page.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	random := rand.New(rand.NewPCG(1, 1))
	for n := range benchHistory {
		s.Append([]health.Transition{benchTransition(random, n)})
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := open(b, dir)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkQuery asks a history of 100,000 transitions; a page has 1,000.
func BenchmarkQuery(b *testing.B) {
	s := fill(b, benchHistory)
	at := func(n int) time.Time { return day.Add(time.Duration(n) * time.Second) }
	for name, q := range map[string]Query{
		"all":                  {},
		"all-newest":           {NewestFirst: true},
		"time":                 {Start: at(benchHistory / 2), End: at(benchHistory/2 + 1000)},
		"cluster":              {Cluster: "cluster-77"},
		"cluster-time":         {Cluster: "cluster-77", Start: at(benchHistory / 2), NewestFirst: true},
		"cluster-address":      {Cluster: "cluster-1", Address: "10.0.0.77:8080"},
		"address":              {Address: "10.0.0.77:8080"},
		"address-newest-limit": {Address: "10.0.0.77:8080", NewestFirst: true, Limit: 1},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Transitions(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
