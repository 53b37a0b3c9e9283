package simulate_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hdsd/assign"
	"hdsd/health"
	"hdsd/simulate"
)

// The figures are those of a planner that is asked by itself.
func TestFiguresAreThePlanners(t *testing.T) {
	zone := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		checkers := fleet(rapid.SliceOfN(zone, 1, 9).Draw(t, "zones")...)
		for i := range checkers {
			checkers[i].Locality.Region = rapid.SampledFrom([]string{"eu", "us"}).Draw(t, "region")
			checkers[i].Weight = rapid.SampledFrom([]float64{0, 1, 3}).Draw(t, "weight")
			checkers[i].MaxChecksPerSecond = rapid.SampledFrom([]float64{0, 0, 30}).Draw(t, "ceiling")
		}
		var clusters []simulate.Cluster
		for i := range rapid.IntRange(1, 4).Draw(t, "clusters") {
			k := web(fmt.Sprint("web-", i), rapid.IntRange(1, 4).Draw(t, "redundancy"), rapid.IntRange(0, 40).Draw(t, "each"), "a", "b")
			if rapid.Bool().Draw(t, "redis") {
				k.Needs = []health.Ability{health.Redis}
			}
			k.Zones = rapid.SampledFrom([]assign.Placement{assign.Spread, assign.OwnOnly, assign.Anywhere}).Draw(t, "placement")
			k.Regions = rapid.SampledFrom([]assign.Placement{assign.Default, assign.OwnOnly}).Draw(t, "regions")
			clusters = append(clusters, k)
		}
		got := simulated(simulate.Input{Checkers: checkers, Clusters: clusters})

		p, sum := planned(clusters, checkers), 0.0
		st := p.Stats()
		for _, k := range checkers {
			sum += float64(p.Checker(k.ID).Rate) / 1000
		}
		if got.Plan.Checks != st.Checks || got.Endpoints != st.Endpoints || total(got.NotChecked) != st.Uncheckable || total(got.TooFew) != st.UnderReplicated {
			t.Errorf("got %+v, want %+v", got, st)
		}
		if got.Plan.Digest != fmt.Sprintf("%016x", p.Digest()) || got.Plan.Endpoints.Max != float64(st.MaxLoad) {
			t.Errorf("another plan: %+v", got.Plan)
		}
		n := float64(len(checkers))
		if !near(got.Probing.Checks, sum) || !near(got.Plan.ChecksPerSecond.Mean*n, sum) || !near(got.Plan.Endpoints.Mean*n, float64(st.Checks)) {
			t.Errorf("%v checks a second, want %v: %+v", got.Probing.Checks, sum, got.Plan)
		}
		// The first loss meets the plan as it was made.
		lost := got.LostZones[0]
		gone := slices.DeleteFunc(slices.Clone(checkers), func(k health.Checker) bool { return k.Locality.Zone != lost.Zone || k.Locality.Region != lost.Region })
		var change assign.Change
		for _, k := range gone {
			change.Leave = append(change.Leave, k.ID)
		}
		moved := 0
		for _, move := range p.Apply(change).Moves {
			if !slices.Contains(change.Leave, move.Checker) {
				moved += len(move.Add)
			}
		}
		after := p.Stats()
		if lost.Checkers != len(gone) || lost.Moved != moved || lost.NotChecked != after.Uncheckable-st.Uncheckable || lost.Dropped != st.Checks-after.Checks || lost.Busiest != after.MaxLoad {
			t.Errorf("%+v lost, want %d moved, %+v after %+v", lost, moved, after, st)
		}
	})
}

func planned(clusters []simulate.Cluster, checkers []health.Checker) *assign.Planner {
	p := assign.New(assign.Options{})
	change := assign.Change{Join: checkers}
	for _, k := range clusters {
		for _, place := range k.Places {
			for _, hash := range place.Hashes {
				change.Upsert = append(change.Upsert, assign.Endpoint{
					ID: health.EndpointID(len(change.Upsert)), Hash: hash, ClusterHash: health.ClusterHash(k.Name), Locality: place.Locality,
					Class: p.Class(assign.Class{Needs: k.Needs}), Redundancy: k.Redundancy, Rate: k.Rate, Zones: k.Zones, Regions: k.Regions,
				})
			}
		}
	}
	p.Apply(change)
	return p
}

func total(list []simulate.Shortfall) int {
	sum := 0
	for _, s := range list {
		sum += s.Endpoints
	}
	return sum
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }
