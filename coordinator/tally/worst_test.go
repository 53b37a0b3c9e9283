package tally_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hdsd/coordinator/tally"
	"hdsd/health"
)

// rows writes what Worst returns.
func rows(worst []tally.Row) (all []string) {
	for _, r := range worst {
		text := fmt.Sprint(r.Cluster, " ", r.State, " ", r.Down, "/", r.Endpoints)
		for _, zone := range []string{"", "a", "b"} {
			l := health.Locality{Region: "eu", Zone: zone}
			if zone == "" {
				l = health.Locality{}
			}
			if c, ok := r.Zones[l]; ok {
				text += fmt.Sprint(" ", zone, ":", c.Down, "/", c.Endpoints)
			}
		}
		all = append(all, text)
	}
	return all
}

// TestWorst holds the order, the zones, the bound, and who sees what.
func TestWorst(t *testing.T) {
	f := newFleet(t)
	f.set("all", 2, endpoint("all", "a", 1, health.Unhealthy), endpoint("all", "b", 2, health.Timeout))
	f.set("half", 2, endpoint("half", "a", 1, health.Unhealthy), endpoint("half", "", 2, health.Healthy))
	f.set("third", 3, endpoint("third", "a", 1, health.Unhealthy), endpoint("third", "a", 2, health.Healthy), endpoint("third", "b", 3, health.Degraded))
	f.set("quarter", 4, endpoint("quarter", "a", 1, health.Unhealthy), endpoint("quarter", "a", 2, health.Healthy), endpoint("quarter", "a", 3, health.Healthy), endpoint("quarter", "a", 4, health.Draining))
	f.set("blind", 0, endpoint("blind", "a", 1, health.Healthy))
	f.set("well", 1, endpoint("well", "a", 1, health.Healthy))
	f.set("empty", 0)
	everything := func(string) bool { return true }
	want := []string{
		"all ALL_DOWN 2/2 a:1/1 b:1/1", "half HALF_DOWN 1/2 :0/1 a:1/1", "third SOME_DOWN 1/3 a:1/2 b:0/1", "quarter SOME_DOWN 1/4 a:1/4",
		"blind UNOBSERVED 0/1 a:0/1", "well OK 0/1 a:0/1",
	}
	for limit := range len(want) + 2 {
		worst, others := f.Worst(limit, everything)
		if diff := cmp.Diff(want[:min(limit, len(want))], rows(worst), cmp.Transformer("nil", func(all []string) []string { return append([]string{}, all...) })); diff != "" || others != max(len(want)-limit, 0) {
			t.Errorf("of %d, %d others:\n%s", limit, others, diff)
		}
	}
	if worst, others := f.Worst(9, func(name string) bool { return name == "well" }); others != 0 || !slices.Equal(rows(worst), want[5:]) {
		t.Errorf("who may see one sees %q and %d others", rows(worst), others)
	}
	f.turn("all", 0, health.Healthy)
	f.turn("well", 0, health.Timeout)
	f.Remove("half")
	worst, _ := f.Worst(2, everything)
	if got := rows(worst); !slices.Equal(got, []string{"well ALL_DOWN 1/1 a:1/1", "all HALF_DOWN 1/2 a:0/1 b:1/1"}) {
		t.Errorf("after changes: %q", got)
	}
}

// TestWorstCountsWhatIs: after any changes, each cell is what a count comes to.
func TestWorstCountsWhatIs(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		f := newFleet(t)
		for range 200 {
			name := fmt.Sprint("c", random.IntN(5))
			is := []health.Status{health.Healthy, health.Unhealthy, health.Timeout, health.Draining}[random.IntN(4)]
			if all := f.clusters[name]; len(all) > 0 && random.IntN(4) > 0 {
				f.turn(name, random.IntN(len(all)), is)
				continue
			}
			var all []tally.Endpoint
			for i := range 1 + random.IntN(6) {
				all = append(all, endpoint(name, []string{"", "a", "b"}[random.IntN(3)], i, is))
			}
			f.set(name, len(all), all...)
		}
		worst, _ := f.Worst(10, func(string) bool { return true })
		for limit := range 5 {
			if some, _ := f.Worst(limit, func(string) bool { return true }); !slices.Equal(rows(some), rows(worst[:limit])) {
				t.Fatalf("seed %d: of %d, %q", seed, limit, rows(some))
			}
		}
		if len(worst) != len(f.clusters) {
			t.Fatalf("seed %d: %d of %d clusters", seed, len(worst), len(f.clusters))
		}
		for _, r := range worst {
			want := map[health.Locality]tally.Cell{}
			for _, e := range f.clusters[r.Cluster] {
				c := want[e.Key.Locality]
				if c.Endpoints++; e.Status.Down() {
					c.Down++
				}
				want[e.Key.Locality] = c
			}
			if diff := cmp.Diff(want, r.Zones); diff != "" {
				t.Fatalf("seed %d, %s:\n%s", seed, r.Cluster, diff)
			}
		}
	}
}

// BenchmarkWorst is what one look at 10,000 clusters takes, 50 of which are down.
func BenchmarkWorst(b *testing.B) {
	all := tally.New()
	for c := range 10_000 {
		is := health.Healthy
		if c < 50 {
			is = health.Unhealthy
		}
		var endpoints []tally.Endpoint
		for i := range 10 {
			endpoints = append(endpoints, endpoint(fmt.Sprint("c", c), []string{"a", "b", "c"}[i%3], i, is))
		}
		all.SetCluster(fmt.Sprint("c", c), 10, slices.Values(endpoints))
	}
	b.ReportAllocs()
	for b.Loop() {
		all.Worst(50, func(string) bool { return true })
	}
}
