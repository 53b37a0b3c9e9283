package assign_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hdsd/assign"
	"hdsd/health"
)

// TestBalance holds uniform fleets to their bound, cold and after events.
func TestBalance(t *testing.T) {
	for _, tt := range []struct{ endpoints, checkers, zones, redundancy int }{
		{20_000, 60, 6, 3}, {20_000, 60, 3, 3}, {5_000, 60, 1, 3}, {3_000, 7, 7, 2}, {20_000, 63, 6, 3}, {10_000, 40, 4, 5}, {8_000, 30, 5, 1},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			p := assign.New(assign.Options{})
			fleet := checkers(tt.checkers, tt.zones)
			p.Apply(assign.Change{Upsert: endpoints(tt.endpoints, tt.zones, p.Class(assign.Class{}), tt.redundancy), Join: fleet})
			checkBalance(t, p, fleet, "cold")
			p.Apply(assign.Change{Leave: names(fleet[:2])})
			fleet = fleet[2:]
			checkBalance(t, p, fleet, "two left")
			for i := range tt.checkers / 4 {
				fleet = append(fleet, checker(tt.checkers+i, tt.zones))
				p.Apply(assign.Change{Join: fleet[len(fleet)-1:]})
				checkBalance(t, p, fleet, "one more")
			}
			var half []health.EndpointID
			for id := range tt.endpoints / 2 {
				half = append(half, health.EndpointID(id))
			}
			p.Apply(assign.Change{Remove: half})
			checkBalance(t, p, fleet, "half of the endpoints")
		})
	}
}

// checkBalance holds each checker to the mean load, or to that of its zone where
// endpoints must have a seat there.
func checkBalance(t *testing.T, p *assign.Planner, fleet []health.Checker, when string) {
	t.Helper()
	sum, zone, count := 0, map[health.Locality]int{}, map[health.Locality]int{}
	for _, c := range fleet {
		sum += p.Load(c.ID)
		zone[c.Locality] += p.Load(c.ID)
		count[c.Locality]++
	}
	for _, c := range fleet {
		mean := max(float64(sum)/float64(len(fleet)), float64(zone[c.Locality])/float64(count[c.Locality]))
		if n := p.Load(c.ID); float64(n) > mean*1.12+1 {
			t.Errorf("%s: %d checks at %s, %.1f at the average one", when, n, c.ID, mean)
		}
	}
	for z := range zone {
		if mean := float64(sum) / float64(len(zone)); float64(zone[z]) > mean*1.12+1 {
			t.Errorf("%s: %d checks in %v, %.1f in the average zone", when, zone[z], z, mean)
		}
	}
}

// TestThousandEvents holds the bound through a long history.
func TestThousandEvents(t *testing.T) {
	const most = 90
	random := rand.New(rand.NewPCG(3, 4))
	p := assign.New(assign.Options{})
	all := endpoints(12_000, 6, p.Class(assign.Class{}), 3)
	p.Apply(assign.Change{Upsert: all[:9_000], Join: checkers(most, 6)})
	worst, away, doubted := 0.0, map[int]bool{}, map[int]bool{}
	for range 1000 {
		switch n := random.IntN(most); {
		case away[n] || doubted[n]:
			p.Apply(assign.Change{Join: []health.Checker{checker(n, 6)}})
			delete(away, n)
			delete(doubted, n)
		case len(doubted) < most/20:
			p.Apply(assign.Change{Doubted: []string{checker(n, 6).ID}})
			doubted[n] = true
		case len(away) < most/3:
			p.Apply(assign.Change{Leave: []string{checker(n, 6).ID}})
			away[n] = true
		default:
			from := random.IntN(len(all) - 300)
			ch := assign.Change{Upsert: all[from : from+300]}
			if random.IntN(2) == 0 {
				ch = assign.Change{}
				for _, e := range all[from : from+300] {
					ch.Remove = append(ch.Remove, e.ID)
				}
			}
			p.Apply(ch)
		}
		st := p.Stats()
		mean := float64(st.Checks) / float64(st.Checkers)
		worst = max(worst, float64(st.MaxLoad)/mean)
		if float64(st.MaxLoad) > mean*1.12+1 {
			t.Fatalf("%d checks at one checker, %.1f at the average one", st.MaxLoad, mean)
		}
	}
	t.Logf("at worst %.3f times the mean", worst)
}

// TestUnevenZones puts all endpoints in a zone with one checker: that zone gets what
// it must, and no more.
func TestUnevenZones(t *testing.T) {
	p := assign.New(assign.Options{})
	all := endpoints(6_000, 1, p.Class(assign.Class{}), 2) // all in z0
	fleet := slices.DeleteFunc(checkers(40, 4), func(c health.Checker) bool {
		return c.Locality == zoneName(0) && c.ID != "checker-0"
	})
	p.Apply(assign.Change{Upsert: all, Join: fleet})
	if n := p.Load("checker-0"); n != len(all) {
		t.Errorf("the own zone's only checker has %d of %d endpoints", n, len(all))
	}
	for _, c := range fleet[1:] {
		if n := p.Load(c.ID); n > 6_000/30*115/100+1 {
			t.Errorf("%s has %d endpoints, 200 are its share", c.ID, n)
		}
	}
}

// TestScarce has three checkers with an ability that a twentieth of the
// endpoints need: they get these and correspondingly less else.
func TestScarce(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(60, 6)
	for i := range 3 {
		fleet[i].Abilities = health.Abilities{health.HTTP: {}, health.TCP: {}, health.Redis: {}}
	}
	common, scarce := p.Class(assign.Class{}), p.Class(assign.Class{Needs: []health.Ability{health.Redis}})
	all := endpoints(12_000, 6, common, 3)
	for i := range 500 {
		all[i*24].Class = scarce
	}
	p.Apply(assign.Change{Upsert: all, Join: fleet})
	for i := range 500 {
		if got := p.Checkers(health.EndpointID(i * 24)); !slices.Equal(got, []string{"checker-0", "checker-1", "checker-2"}) {
			t.Fatalf("%v have what only three can do", got)
		}
	}
	checkBalance(t, p, fleet, "with a scarce ability")
}

// TestApart gives two halves of a fleet, which reach different endpoints,
// loads of their own.
func TestApart(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(40, 4)
	for i := range fleet {
		fleet[i].Metadata = map[string]string{"vpc": []string{"blue", "green"}[i/4%2]}
	}
	all := endpoints(10_000, 4, 0, 3)
	reach := func(vpc string) assign.ClassID {
		return p.Class(assign.Class{Reach: &health.Reach{Metadata: map[string]string{"vpc": vpc}}})
	}
	blue, green := reach("blue"), reach("green")
	for i := range all {
		all[i].Class = blue
		if i%10 == 0 {
			all[i].Class = green
		}
	}
	p.Apply(assign.Change{Upsert: all, Join: fleet})
	for _, c := range fleet {
		share := 9_000 * 3 / 20
		if c.Metadata["vpc"] == "green" {
			share = 1_000 * 3 / 20
		}
		if n := p.Load(c.ID); n > share*112/100+1 {
			t.Errorf("%s (%s) has %d endpoints, %d are its share", c.ID, c.Metadata["vpc"], n, share)
		}
	}
}

// TestJoinTakesItsShare moves no more than a fair share to a newcomer, and
// nothing between others.
func TestJoinTakesItsShare(t *testing.T) {
	p := assign.New(assign.Options{})
	p.Apply(assign.Change{Upsert: endpoints(20_000, 6, p.Class(assign.Class{}), 3), Join: checkers(60, 6)})
	for i := range 20 {
		c := checker(60+i, 6)
		d := p.Apply(assign.Change{Join: []health.Checker{c}})
		st := p.Stats()
		mean := float64(st.Checks) / float64(st.Checkers)
		n, _ := moved(d)
		if float64(n) > mean*1.02 || float64(n) < mean*0.85 {
			t.Errorf("%s: %d checks moved, its share is %.1f", c.ID, n, mean)
		}
		if n != p.Load(c.ID) {
			t.Errorf("%s has %d checks, but %d moved", c.ID, p.Load(c.ID), n)
		}
	}
}

// TestLeaveMovesOrphansOnly takes nothing from those that stay.
func TestLeaveMovesOrphansOnly(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(60, 6)
	p.Apply(assign.Change{Upsert: endpoints(20_000, 6, p.Class(assign.Class{}), 3), Join: fleet})
	for _, c := range fleet[:6] {
		load := p.Load(c.ID)
		d := p.Apply(assign.Change{Leave: []string{c.ID}})
		if added, removed := moved(d); added != load || removed != load {
			t.Errorf("%d checks taken away and %d given since %s left with %d", removed, added, c.ID, load)
		}
	}
}

// TestZoneComesBack restores the plan as it was when a zone is back.
func TestZoneComesBack(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(60, 6)
	p.Apply(assign.Change{Upsert: endpoints(20_000, 6, p.Class(assign.Class{}), 3), Join: fleet})
	var zone []health.Checker
	load := 0
	for _, c := range fleet {
		if c.Locality == zoneName(2) {
			zone = append(zone, c)
			load += p.Load(c.ID)
		}
	}
	before := p.Digest()
	if n, _ := moved(p.Apply(assign.Change{Leave: names(zone)})); n != load {
		t.Errorf("%d checks moved when a zone with %d was lost", n, load)
	}
	if n, _ := moved(p.Apply(assign.Change{Join: zone})); n != load || p.Digest() != before {
		t.Errorf("%d checks moved when a zone with %d came back, to the same plan: %v", n, load, p.Digest() == before)
	}
}

// TestStateless compares the plan that grew with the one made from scratch: a
// standby without state would move the difference.
func TestStateless(t *testing.T) {
	grown, scratch := assign.New(assign.Options{}), assign.New(assign.Options{})
	fleet, all := checkers(120, 6), endpoints(40_000, 6, grown.Class(assign.Class{}), 3)
	scratch.Class(assign.Class{})
	grown.Apply(assign.Change{Upsert: all, Join: fleet[:110]})
	for _, c := range fleet[110:] {
		grown.Apply(assign.Change{Join: []health.Checker{c}})
	}
	grown.Apply(assign.Change{Leave: names(fleet[:5])})
	scratch.Apply(assign.Change{Upsert: all, Join: fleet[5:]})
	differ := 0
	for i := range all {
		there := grown.Checkers(health.EndpointID(i))
		for _, c := range scratch.Checkers(health.EndpointID(i)) {
			if !slices.Contains(there, c) {
				differ++
			}
		}
	}
	share := float64(differ) / float64(3*len(all))
	t.Logf("%.1f %% of the checks are elsewhere", share*100)
	if share > .15 {
		t.Errorf("%.1f %% of the checks are elsewhere in a plan made from scratch", share*100)
	}
}
