package simulate_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hdsd/assign"
	"hdsd/health"
	"hdsd/simulate"
)

// fleet is checkers that take HTTP, named after their zones.
func fleet(zones ...string) []health.Checker {
	var all []health.Checker
	for i, zone := range zones {
		all = append(all, health.Checker{
			ID: fmt.Sprintf("%s-%d", zone, i), Locality: health.Locality{Region: "eu", Zone: zone},
			Abilities: health.Abilities{health.HTTP: {}},
		})
	}
	return all
}

// web is a cluster with so many endpoints in each zone, each of which is checked
// twice a second.
func web(name string, redundancy, each int, zones ...string) simulate.Cluster {
	k := simulate.Cluster{Name: name, Needs: []health.Ability{health.HTTP}, Redundancy: redundancy, Rate: 2000}
	for _, zone := range zones {
		place := simulate.Place{Locality: health.Locality{Region: "eu", Zone: zone}}
		for i := range each {
			place.Hashes = append(place.Hashes, health.Endpoint{Cluster: name, Locality: place.Locality, Address: fmt.Sprint(i)}.Hash())
		}
		k.Places = append(k.Places, place)
	}
	return k
}

func simulated(in simulate.Input) *simulate.Result {
	s := simulate.New(in)
	s.Plan()
	return s.Result(1000)
}

func TestAFleetWhoseEveryCheckerHasEverything(t *testing.T) {
	web := web("web", 3, 10, "a", "b")
	web.Aside = []simulate.Aside{{"a name", 2}}
	got := simulated(simulate.Input{
		Checkers: fleet("a", "b", "c"), Clusters: []simulate.Cluster{web},
		DataPlanes: []simulate.DataPlanes{
			{Count: 10, Uses: func(string) bool { return true }},
			{Count: 5, Uses: func(name string) bool { return name != "web" }},
		},
	})
	even := func(value float64) simulate.Spread { return simulate.Spread{value, value, value, value, 1} }
	loss := simulate.Loss{Busiest: 20, ChecksPerSecond: 40, Dropped: 20}
	want := &simulate.Result{
		Checkers: 3, Zones: 3, Clusters: 1, Endpoints: 22, DataPlanes: 15,
		Plan:         simulate.Plan{Digest: got.Plan.Digest, Checks: 60, Endpoints: even(20), ChecksPerSecond: even(40), Clusters: even(1), MaxOfShare: 1},
		LostCheckers: simulate.Losses{Tried: 3, Median: loss, Worst: loss, Missed: "a-0"},
		LostZones:    []simulate.ZoneLoss{{"eu", "a", 1, loss}, {"eu", "b", 1, loss}, {"eu", "c", 1, loss}},
		NotChecked:   []simulate.Shortfall{{"a name", 2, 1, "web"}},
		TooFew:       []simulate.Shortfall{},
		Probing: simulate.Probing{
			Checks: 120, PerEndpoint: even(6),
			OwnChecks: 400, PerDataPlane: simulate.Spread{0, 40, 40, 400. / 15, 1.5}, OwnPerEndpoint: even(20), Times: 400. / 120,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOthersTakeOverFromWhoIsLost(t *testing.T) {
	got := simulated(simulate.Input{Checkers: fleet("a", "a", "b", "b"), Clusters: []simulate.Cluster{web("web", 1, 100, "a")}})
	if got.Plan.Checks != 100 || got.LostCheckers.Fit != 4 || got.LostCheckers.Missed != "" {
		t.Errorf("got %+v", got)
	}
	a, b := got.LostZones[0], got.LostZones[1] // nobody in b has an endpoint as long as there is somebody in a
	if a.Checkers != 2 || a.Moved != 100 || !a.Fits() || a.Told != 2 || b.Moved != 0 || !b.Fits() || a.ChecksPerSecond != 2*float64(a.Busiest) {
		t.Errorf("zones lost: %+v", got.LostZones)
	}
	if worst := got.LostCheckers.Worst; worst.Moved < 50 || worst.Told != 1 || worst.Busiest != 100 || got.LostCheckers.Median.Moved != 0 {
		t.Errorf("checkers lost: %+v", got.LostCheckers)
	}
	if costliest := got.LostCheckers.Costliest; costliest != "a-0" && costliest != "a-1" {
		t.Errorf("the costliest is %s", costliest)
	}
}

func TestWhyEndpointsHaveTooFewCheckers(t *testing.T) {
	redis := web("redis", 3, 5, "a")
	redis.Needs = []health.Ability{health.Redis}
	reach := web("reach", 1, 4, "a")
	reach.Reach = &health.Reach{Metadata: map[string]string{"vpc": "blue"}}
	far := web("far", 1, 3, "z")
	far.Zones = assign.OwnOnly
	near := web("near", 2, 2, "a")
	near.Zones = assign.OwnOnly
	got := simulated(simulate.Input{Checkers: fleet("a", "b"), Clusters: []simulate.Cluster{redis, reach, far, near, web("web", 3, 1, "a", "b")}})
	none := []simulate.Shortfall{
		{"none of the 2 checkers takes REDIS", 5, 1, "redis"},
		{"none of the 2 checkers takes HTTP, and is allowed by its policy (policies[].checkers)", 4, 1, "reach"},
		{"none of the 2 checkers takes HTTP, and is in its zone or region, where its checkers have to be", 3, 1, "far"},
	}
	few := []simulate.Shortfall{
		{"lacks 1 of 2 checkers: no other of the 2 checkers takes HTTP, and is in its zone or region, where its checkers have to be", 2, 1, "near"},
		{"lacks 1 of 3 checkers: no other of the 2 checkers takes HTTP", 2, 1, "web"},
	}
	if diff := cmp.Diff(none, got.NotChecked); diff != "" {
		t.Errorf("not checked: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(few, got.TooFew); diff != "" {
		t.Errorf("too few: -want +got:\n%s", diff)
	}
}

func TestCeilingsLeaveOutWhatDoesNotFit(t *testing.T) {
	checkers := fleet("a", "b")
	for i := range checkers {
		checkers[i].MaxChecksPerSecond = 10 // five endpoints
	}
	got := simulated(simulate.Input{Checkers: checkers, Clusters: []simulate.Cluster{web("web", 1, 12, "a")}})
	want := []simulate.Shortfall{{"none of the 2 checkers takes HTTP, and has room below its max_checks_per_second", 2, 1, "web"}}
	if diff := cmp.Diff(want, got.NotChecked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if lost := got.LostCheckers.Worst; lost.Moved != 0 || lost.NotChecked != 5 || lost.Dropped != 5 || got.LostCheckers.Fit != 0 {
		t.Errorf("the loss of a checker: %+v", got.LostCheckers)
	}
}

func TestOnlySoManyLossesAreTried(t *testing.T) {
	zones := make([]string, 30)
	for i := range zones {
		zones[i] = fmt.Sprintf("z%02d", i)
	}
	s := simulate.New(simulate.Input{Checkers: fleet(zones...), Clusters: []simulate.Cluster{web("web", 2, 100, "z00")}})
	s.Plan()
	got := s.Result(7)
	if got.LostCheckers.Tried != 7 || len(got.LostZones) != 7 || got.Zones != 30 || got.LostZones[6].Zone != "z25" {
		t.Errorf("got %+v", got)
	}
}

func TestNothingAtAll(t *testing.T) {
	got := simulated(simulate.Input{})
	want := &simulate.Result{Plan: simulate.Plan{Digest: "0000000000000000"}, LostZones: []simulate.ZoneLoss{}, NotChecked: []simulate.Shortfall{}, TooFew: []simulate.Shortfall{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
