package assign_test

import (
	"slices"
	"testing"

	"hdsd/assign"
	"hdsd/health"
)

// weighed makes a fleet whose checkers weigh 1/2, 1, 2 and 3 in turn.
func weighed(n, zones int) []health.Checker {
	fleet := checkers(n, zones)
	for i := range fleet {
		fleet[i].Weight = []float64{0.5, 0, 2, 3}[i/zones%4]
	}
	return fleet
}

// checkWeights holds each checker to its weight's part of all.
func checkWeights(t *testing.T, p *assign.Planner, fleet []health.Checker, when string) {
	t.Helper()
	sum, mass := 0, 0.0
	weight := func(c health.Checker) float64 {
		if c.Weight == 0 {
			return 1
		}
		return c.Weight
	}
	for _, c := range fleet {
		sum += p.Load(c.ID)
		mass += weight(c)
	}
	load := map[float64][2]float64{} // by weight: what they have, and should
	for _, c := range fleet {
		share := float64(sum) / mass * weight(c)
		if n := float64(p.Load(c.ID)); n > share*1.12+1 {
			t.Errorf("%s: %s (weight %g) has %g endpoints, its share is %.1f", when, c.ID, c.Weight, n, share)
		}
		if got := p.Checker(c.ID); float64(got.Share) < share*0.98 || float64(got.Share) > share*1.02+1 {
			t.Errorf("%s: %s is told to have a share of %d, not %.1f", when, c.ID, got.Share, share)
		}
		load[c.Weight] = [2]float64{load[c.Weight][0] + float64(p.Load(c.ID)), load[c.Weight][1] + share}
	}
	for w, is := range load {
		if is[0] < is[1]*0.7 {
			t.Errorf("%s: those of weight %g have %g endpoints, %.1f are their share", when, w, is[0], is[1])
		}
	}
}

func TestWeights(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := weighed(48, 4)
	p.Apply(assign.Change{Upsert: endpoints(20_000, 4, p.Class(assign.Class{}), 3), Join: fleet})
	checkWeights(t, p, fleet, "cold")
	p.Apply(assign.Change{Leave: names(fleet[:3])})
	checkWeights(t, p, fleet[3:], "three left")
	for i := range fleet[:3] {
		p.Apply(assign.Change{Join: fleet[i : i+1]})
	}
	checkWeights(t, p, fleet, "they came back")
}

// TestWeightChanges moves only what the change asks for.
func TestWeightChanges(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(40, 4)
	p.Apply(assign.Change{Upsert: endpoints(20_000, 4, p.Class(assign.Class{}), 3), Join: fleet})
	for _, weight := range []float64{2, 0.5, 1} {
		before := p.Load(fleet[7].ID)
		fleet[7].Weight = weight
		added, removed := moved(p.Apply(assign.Change{Join: fleet[7:8]}))
		change := p.Load(fleet[7].ID) - before
		if change < 0 {
			change = -change
		}
		if added != removed || added > change+change/10 || change < before/4 {
			t.Errorf("to weight %g: %d moved, the load changed by %d", weight, added, change)
		}
		checkWeights(t, p, fleet, "changed")
	}
}

// cost gives all endpoints the same price of a check every so many seconds.
func cost(all []assign.Endpoint, seconds int64) []assign.Endpoint {
	for i := range all {
		all[i].Rate = 1000 / seconds
	}
	return all
}

// TestCeilings uses a fleet that can do 4/5 of the checks: every endpoint has a
// checker, no checker is above its ceiling, what is missing
// says so, and it is made up for when there is room.
func TestCeilings(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(20, 4)
	for i := range fleet {
		fleet[i].MaxChecksPerSecond = 240 // 6,000 x 3 / 3 s / 20 = 300
	}
	all := cost(endpoints(6_000, 4, p.Class(assign.Class{}), 3), 3)
	p.Apply(assign.Change{Upsert: all, Join: fleet})
	st := p.Stats()
	if st.Uncheckable != 0 || st.NoRoom != st.UnderReplicated || st.NoRoom == 0 {
		t.Errorf("%+v", st)
	}
	for _, c := range fleet {
		if rate := p.Checker(c.ID).Rate; rate > 240_000 || rate < 239_000 {
			t.Errorf("%s does %d checks in 1,000 s", c.ID, rate)
		}
	}
	short := slices.IndexFunc(all, func(e assign.Endpoint) bool { return len(p.Checkers(e.ID)) < 3 })
	if missing, why := p.Shortage(all[short].ID); missing != 3-len(p.Checkers(all[short].ID)) || why != assign.NoRoom {
		t.Errorf("%d missing for reason %d", missing, why)
	}
	for i := range 6 {
		c := checker(20+i, 4)
		c.MaxChecksPerSecond = 240
		p.Apply(assign.Change{Join: []health.Checker{c}})
	}
	if st := p.Stats(); st.NoRoom != 0 || st.Checks != 18_000 {
		t.Errorf("with six more: %+v", st)
	}
}

// TestShareAtCeilings has one of two zones asked for more than it is able to do:
// nobody's share is more than fits.
func TestShareAtCeilings(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(8, 2)
	for i := range fleet {
		fleet[i].MaxChecksPerSecond = 10
		if i%2 == 1 {
			fleet[i].Abilities = health.Abilities{health.Redis: {}}
		}
	}
	all := cost(endpoints(100, 2, p.Class(assign.Class{Needs: []health.Ability{health.Redis}}), 2), 1)
	p.Apply(assign.Change{Upsert: all, Join: fleet})
	if is := p.Checker(fleet[1].ID); is.Share != 10 || is.Endpoints != 10 {
		t.Errorf("%+v, 10 are possible", is)
	}
}

// TestCeilingFalls lowers a checker's ceiling: it gives up what is above it, and
// hardly anything else moves.
func TestCeilingFalls(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(20, 4)
	all := cost(endpoints(6_000, 4, p.Class(assign.Class{}), 3), 1)
	p.Apply(assign.Change{Upsert: all, Join: fleet})
	before := p.Load(fleet[3].ID)
	fleet[3].MaxChecksPerSecond = 500
	added, removed := moved(p.Apply(assign.Change{Join: fleet[3:4]}))
	if n := p.Load(fleet[3].ID); n > 500 || n < 450 || added < before-n || added > (before-n)*11/10 || removed != added {
		t.Errorf("%d of %d left, %d added, %d removed", n, before, added, removed)
	}
	if st := p.Stats(); st.NoRoom != 0 || st.Checks != 18_000 {
		t.Errorf("%+v", st)
	}
}

// TestPartOfAUnitFits fills a ceiling that is lower than the cost of a unit.
func TestPartOfAUnitFits(t *testing.T) {
	p := assign.New(assign.Options{})
	c := checker(0, 1)
	c.MaxChecksPerSecond = 7
	d := p.Apply(assign.Change{Upsert: cost(endpoints(300, 1, p.Class(assign.Class{}), 1), 1), Join: []health.Checker{c}})
	if n := p.Load(c.ID); n != 7 || len(d.Uncheckable) != 293 {
		t.Errorf("%d checked, %d told not to be", n, len(d.Uncheckable))
	}
}

// TestNothingFits says so of an endpoint that no ceiling allows, and has it
// checked as soon as one does.
func TestNothingFits(t *testing.T) {
	p := assign.New(assign.Options{})
	e := cost(endpoints(1, 1, p.Class(assign.Class{}), 1), 1)
	c := checker(0, 1)
	c.MaxChecksPerSecond = 0.5
	d := p.Apply(assign.Change{Upsert: e, Join: []health.Checker{c}})
	if len(d.Uncheckable) != 1 || d.Uncheckable[0].Reason != assign.NoRoom {
		t.Fatalf("%+v", d)
	}
	c.MaxChecksPerSecond = 1
	if d = p.Apply(assign.Change{Join: []health.Checker{c}}); len(d.Checkable) != 1 || p.Load(c.ID) != 1 {
		t.Errorf("%+v", d)
	}
}

// TestScarceAtCeilings has 3 of 1,000 checkers able to check Redis, all at
// their ceilings with what anyone could check, when Redis clusters come: these
// get the three, and others do correspondingly more of the rest.
func TestScarceAtCeilings(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(1000, 5)
	for i := range fleet {
		fleet[i].MaxChecksPerSecond = 80
		if i < 3 {
			fleet[i].Abilities = health.Abilities{health.HTTP: {}, health.TCP: {}, health.Redis: {}}
		}
	}
	common, scarce := p.Class(assign.Class{}), p.Class(assign.Class{Needs: []health.Ability{health.Redis}})
	all := cost(endpoints(20_000, 5, common, 3), 1)
	for i := range 70 {
		all[i*100].Class = scarce
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(e assign.Endpoint) bool { return e.Class == scarce })
	late := slices.DeleteFunc(slices.Clone(all), func(e assign.Endpoint) bool { return e.Class != scarce })
	p.Apply(assign.Change{Upsert: rest, Join: fleet})
	p.Apply(assign.Change{Upsert: late})
	for _, e := range late {
		if got := p.Checkers(e.ID); !slices.Equal(got, []string{"checker-0", "checker-1", "checker-2"}) {
			t.Fatalf("%v have what only three can do", got)
		}
	}
	if st := p.Stats(); st.NoRoom != 0 || st.Checks != 60_000 {
		t.Errorf("%+v", st)
	}
	for _, c := range fleet[:3] {
		if n := p.Load(c.ID); n > 80 {
			t.Errorf("%s has %d", c.ID, n)
		}
	}
}

// TestZonesAtCeilings fills a zone's checkers up to their ceilings with checks that
// any zone could make. Then endpoints come that only this zone may check.
func TestZonesAtCeilings(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet := checkers(16, 4)
	for i := range fleet {
		fleet[i].MaxChecksPerSecond = 100
		if i%4 == 0 {
			fleet[i].MaxChecksPerSecond = 60
		}
	}
	all := cost(endpoints(460, 4, p.Class(assign.Class{}), 3), 1)
	for i := range all {
		all[i].Zones = assign.Anywhere
	}
	p.Apply(assign.Change{Upsert: all[:420], Join: fleet})
	late := all[420:]
	for i := range late {
		late[i].Locality, late[i].Zones = zoneName(0), assign.OwnOnly
	}
	p.Apply(assign.Change{Upsert: late})
	if st := p.Stats(); st.NoRoom != 0 || st.Checks != 3*len(all) {
		t.Errorf("%+v", st)
	}
}

// TestLooks looks for little room at a time: what does not fit yet says so, those
// without any checker come first, and the rest follows with later changes.
func TestLooks(t *testing.T) {
	p := assign.New(assign.Options{Looks: 1, Unit: 8})
	fleet := checkers(24, 4)
	for i := range fleet {
		fleet[i].MaxChecksPerSecond = 80
		if i < 3 {
			fleet[i].Abilities = health.Abilities{health.Redis: {}}
		}
	}
	common, scarce := p.Class(assign.Class{}), p.Class(assign.Class{Needs: []health.Ability{health.Redis}})
	all := cost(endpoints(600, 4, common, 3), 1)
	late := all[:60]
	p.Apply(assign.Change{Upsert: all[60:], Join: fleet})
	for i := range late {
		late[i].Class = scarce
	}
	p.Apply(assign.Change{Upsert: late})
	short := p.Short()
	if st := p.Stats(); short == 0 || st.Uncheckable != 0 {
		t.Errorf("%d have too few checkers at first: %+v", short, st)
	}
	for n := 0; p.Short() > 0; n++ {
		if n == 60 {
			t.Fatalf("%d still have too few", p.Short())
		}
		p.Apply(assign.Change{Remove: []health.EndpointID{all[100+n].ID}})
	}
}
