package assign_test

import (
	"fmt"
	"slices"
	"testing"

	"hdsd/assign"
	"hdsd/health"
)

// TestPlacement has two regions with two zones of three checkers each.
func TestPlacement(t *testing.T) {
	var fleet []health.Checker
	home := map[string]health.Locality{}
	for i := range 12 {
		c := checker(i, 1)
		c.Locality = health.Locality{Region: []string{"eu", "us"}[i%2], Zone: fmt.Sprint("z", i/2%2)}
		home[c.ID] = c.Locality
		fleet = append(fleet, c)
	}
	own := health.Locality{Region: "eu", Zone: "z1"}
	for _, tt := range []struct {
		zones, regions         assign.Placement
		redundancy             int
		zone, region, distinct [2]int // least and most seats in its own zone and region; distinct zones
	}{
		{assign.Default, assign.Default, 3, [2]int{1, 1}, [2]int{1, 2}, [2]int{3, 3}},
		{assign.Spread, assign.Spread, 2, [2]int{1, 1}, [2]int{1, 1}, [2]int{2, 2}},
		{assign.Spread, assign.OwnFirst, 3, [2]int{1, 2}, [2]int{3, 3}, [2]int{2, 2}},
		{assign.Spread, assign.OwnFirst, 7, [2]int{3, 3}, [2]int{6, 6}, [2]int{3, 3}},
		{assign.Spread, assign.OwnOnly, 7, [2]int{3, 3}, [2]int{6, 6}, [2]int{2, 2}},
		{assign.OwnOnly, assign.Default, 5, [2]int{3, 3}, [2]int{3, 3}, [2]int{1, 1}},
		{assign.OwnFirst, assign.Default, 2, [2]int{2, 2}, [2]int{2, 2}, [2]int{1, 1}},
		{assign.OwnFirst, assign.Default, 5, [2]int{3, 3}, [2]int{3, 4}, [2]int{3, 3}},
		{assign.OwnFirst, assign.OwnFirst, 4, [2]int{3, 3}, [2]int{4, 4}, [2]int{2, 2}},
		{assign.Anywhere, assign.OwnOnly, 4, [2]int{1, 3}, [2]int{4, 4}, [2]int{2, 2}},
		{assign.Anywhere, assign.Anywhere, 3, [2]int{0, 3}, [2]int{0, 3}, [2]int{1, 3}},
	} {
		p := assign.New(assign.Options{})
		all := endpoints(60, 1, p.Class(assign.Class{}), tt.redundancy)
		for i := range all {
			all[i].Locality, all[i].Zones, all[i].Regions = own, tt.zones, tt.regions
		}
		p.Apply(assign.Change{Upsert: all, Join: fleet})
		for _, e := range all {
			zone, region, distinct := 0, 0, map[health.Locality]bool{}
			for _, id := range p.Checkers(e.ID) {
				distinct[home[id]] = true
				if home[id] == own {
					zone++
				}
				if home[id].Region == own.Region {
					region++
				}
			}
			within := func(n int, between [2]int) bool { return n >= between[0] && n <= between[1] }
			if !within(zone, tt.zone) || !within(region, tt.region) || !within(len(distinct), tt.distinct) {
				t.Errorf("%+v: %d in its own zone, %d in its region, %d zones", tt, zone, region, len(distinct))
				break
			}
		}
	}
}

// TestPlacementChanges moves only what the change asks for, and says of an
// endpoint with nobody in its zone that others are too far.
func TestPlacementChanges(t *testing.T) {
	p := assign.New(assign.Options{})
	all := endpoints(2_000, 5, p.Class(assign.Class{}), 3)
	p.Apply(assign.Change{Upsert: all, Join: checkers(24, 4)}) // nobody in z4
	for i := range all {
		all[i].Zones = assign.OwnFirst
	}
	added, removed := moved(p.Apply(assign.Change{Upsert: all}))
	if want := 1_600 * 2; added != removed || added > want || added < want*9/10 {
		t.Errorf("%d moved, two of three checks of those with checkers in their zone are %d", added, want)
	}
	for i := range all {
		all[i].Zones = assign.OwnOnly
	}
	d := p.Apply(assign.Change{Upsert: all})
	if added, removed = moved(d); added > 50 || removed != 400*3+added || len(d.Uncheckable) != 400 {
		t.Errorf("%d added, %d removed, %d uncheckable", added, removed, len(d.Uncheckable))
	}
	if !slices.ContainsFunc(d.Uncheckable, func(u assign.Uncheckable) bool { return u.Reason == assign.TooFar }) {
		t.Errorf("%+v", d.Uncheckable[0])
	}
}

// TestUnevenFleet has zones of very different size, and as many endpoints in
// each: all checkers have their share.
func TestUnevenFleet(t *testing.T) {
	p := assign.New(assign.Options{})
	var fleet []health.Checker
	for z, n := range []int{36, 24, 18, 18, 12, 12} {
		for range n {
			c := checker(len(fleet), 1)
			c.Locality = zoneName(z)
			fleet = append(fleet, c)
		}
	}
	all := endpoints(60_000, 6, p.Class(assign.Class{}), 3)
	p.Apply(assign.Change{Upsert: all, Join: fleet})
	bound := func(when string) {
		t.Helper()
		st := p.Stats()
		mean := float64(st.Checks) / float64(st.Checkers)
		if worst := float64(st.MaxLoad) / mean; worst > 1.12 {
			t.Errorf("%s: %.3f times the mean", when, worst)
		}
	}
	bound("cold")
	for i := range 30 {
		gone := fleet[i*4 : i*4+1]
		p.Apply(assign.Change{Leave: names(gone)})
		bound("left")
		p.Apply(assign.Change{Join: gone})
		bound("back")
	}
}
