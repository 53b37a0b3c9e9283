package assign_test

import (
	"reflect"
	"slices"
	"testing"

	"hdsd/assign"
	"hdsd/health"
)

// one makes a Planner with a single endpoint in zone z0 and a fleet in zones of
// its own each.
func one(redundancy, fleet int) (*assign.Planner, assign.Endpoint) {
	p := assign.New(assign.Options{})
	e := endpoints(1, 1, p.Class(assign.Class{}), redundancy)[0]
	p.Apply(assign.Change{Upsert: []assign.Endpoint{e}, Join: checkers(fleet, fleet)})
	return p, e
}

// byID finds a checker of one's fleet.
func byID(fleet int, id string) health.Checker {
	all := checkers(fleet, fleet)
	return all[slices.IndexFunc(all, func(c health.Checker) bool { return c.ID == id })]
}

// TestSubstitutes loses checkers one after the other: with two live ones left
// nothing happens, with one a substitute comes, and goes when it can.
func TestSubstitutes(t *testing.T) {
	for _, tt := range []struct{ redundancy, lose, substitutes int }{
		{1, 1, 1}, {2, 1, 1}, {2, 2, 2}, {3, 1, 0}, {3, 2, 1}, {3, 3, 2}, {5, 3, 0}, {5, 4, 1},
	} {
		const fleet = 8
		p, e := one(tt.redundancy, fleet)
		seats := p.Checkers(e.ID)
		before := p.Digest()
		p.Apply(assign.Change{Lost: seats[:tt.lose]})
		if got := len(p.Checkers(e.ID)) - len(seats); got != tt.substitutes || p.Stats().Substitutes != got {
			t.Errorf("%+v: %d substitutes (%+v)", tt, got, p.Stats())
		}
		var back []health.Checker
		for _, id := range seats[:tt.lose] {
			back = append(back, byID(fleet, id))
		}
		if p.Apply(assign.Change{Join: back}); p.Digest() != before || p.Stats().Substitutes != 0 {
			t.Errorf("%+v: %v after they came back, %v before", tt, p.Checkers(e.ID), seats)
		}
	}
}

// TestDoubted has each of an endpoint's doubted checkers replaced, those that were
// lost before only as far as they must be; it ends where it began.
func TestDoubted(t *testing.T) {
	for _, tt := range []struct{ redundancy, doubt, lose, substitutes int }{
		{1, 1, 0, 1}, {2, 1, 0, 1}, {3, 1, 0, 1}, {3, 2, 0, 2}, {3, 3, 0, 3}, {3, 1, 1, 1}, {3, 1, 2, 2}, {5, 2, 2, 2}, {5, 4, 0, 3}, // nobody else is left

	} {
		const fleet = 8
		p, e := one(tt.redundancy, fleet)
		seats, before, stored := p.Checkers(e.ID), p.Digest(), p.Plan()
		doubted, lost := seats[:tt.doubt], seats[tt.doubt:tt.doubt+tt.lose]
		p.Apply(assign.Change{Doubted: doubted, Lost: lost})
		if got := len(p.Checkers(e.ID)) - len(seats); got != tt.substitutes || p.Stats().Substitutes != got {
			t.Errorf("%+v: %d substitutes (%+v)", tt, got, p.Stats())
		}
		if !reflect.DeepEqual(p.Plan(), stored) {
			t.Errorf("%+v: substitutes are stored: %v", tt, p.Plan())
		}
		if d := p.Apply(assign.Change{Doubted: doubted, Lost: lost}); len(d.Moves) > 0 {
			t.Errorf("%+v: said again, it moves %+v", tt, d.Moves)
		}
		var back []health.Checker
		for _, id := range seats[:tt.doubt+tt.lose] {
			back = append(back, byID(fleet, id))
		}
		if p.Apply(assign.Change{Join: back}); p.Digest() != before || p.Stats().Substitutes != 0 {
			t.Errorf("%+v: %v after they came back, %v before", tt, p.Checkers(e.ID), seats)
		}
	}
}

// TestBlind adds substitutes until the blind are outnumbered, and none where they are
// already. The plan returns to where it began, or stays while one is still blind.
func TestBlind(t *testing.T) {
	for _, tt := range []struct{ redundancy, blind, lose, doubt, substitutes int }{
		{1, 1, 0, 0, 2}, {2, 1, 0, 0, 1}, {3, 1, 0, 0, 0}, {3, 2, 0, 0, 2}, {3, 3, 0, 0, 4}, {3, 1, 1, 0, 1},
		{3, 2, 1, 0, 3}, {5, 2, 0, 0, 0}, {5, 3, 0, 0, 2}, {3, 0, 1, 0, 0}, {3, 1, 0, 1, 1}, {3, 2, 0, 1, 2}, // one of them is doubted
	} {
		const fleet = 9
		p, e := one(tt.redundancy, fleet)
		seats, before, stored := p.Checkers(e.ID), p.Digest(), p.Plan()
		blind, lost, doubted := seats[:tt.blind], seats[tt.blind:tt.blind+tt.lose], seats[:tt.doubt]
		p.Apply(assign.Change{Blind: blind, Lost: lost})
		p.Apply(assign.Change{Doubted: doubted})
		if got := len(p.Checkers(e.ID)) - len(seats); got != tt.substitutes || p.Stats().Substitutes != got {
			t.Errorf("%+v: %d substitutes (%+v)", tt, got, p.Stats())
		}
		if !reflect.DeepEqual(p.Plan(), stored) {
			t.Errorf("%+v: substitutes are stored: %v", tt, p.Plan())
		}
		if d := p.Apply(assign.Change{Blind: blind, Lost: seats[:tt.blind+tt.lose]}); len(d.Moves) > 0 {
			t.Errorf("%+v: said again, or lost, it moves %+v", tt, d.Moves)
		}
		var back []health.Checker
		for _, id := range seats[:tt.blind+tt.lose] {
			back = append(back, byID(fleet, id))
		}
		p.Apply(assign.Change{Join: back, Blind: blind})
		if want, got := max(2*tt.blind+1-tt.redundancy, 0), p.Stats().Substitutes; tt.blind > 0 && got != want {
			t.Errorf("%+v: %d substitutes when they are no more than blind, want %d", tt, got, want)
		}
		if p.Apply(assign.Change{Join: back}); p.Digest() != before || p.Stats().Substitutes != 0 {
			t.Errorf("%+v: %v after they came back, %v before", tt, p.Checkers(e.ID), seats)
		}
	}
}

// TestTheBlindCheckWhatNobodyElseCan: an endpoint that comes where all who reach it are
// blind is checked by one of them, and by those that are asked for when it sees again.
func TestTheBlindCheckWhatNobodyElseCan(t *testing.T) {
	p := assign.New(assign.Options{})
	reach := p.Class(assign.Class{Reach: &health.Reach{Localities: []health.Locality{zoneName(0)}}})
	fleet := checkers(8, 4) // two in each zone
	p.Apply(assign.Change{Join: fleet})
	p.Apply(assign.Change{Blind: names(fleet)[:5]})
	all := endpoints(20, 4, reach, 2)
	if d := p.Apply(assign.Change{Upsert: all}); len(d.Uncheckable) > 0 {
		t.Errorf("%d of %d endpoints are not checked", len(d.Uncheckable), len(all))
	}
	for _, e := range all {
		if n := len(p.Checkers(e.ID)); n != 1 {
			t.Errorf("%d check %d, want one of those who are blind", n, e.ID)
		}
	}
	p.Apply(assign.Change{Join: []health.Checker{fleet[0], fleet[4]}})
	for _, e := range all {
		if n := len(p.Checkers(e.ID)); n != 2 {
			t.Errorf("%d check %d when they are not blind any more, want 2", n, e.ID)
		}
	}
}

// TestDoubtedThenLost keeps the substitutes, who have the seat when it is given up;
// one that was lost before it is doubted has them, too.
func TestDoubtedThenLost(t *testing.T) {
	for _, first := range []assign.Change{{}, {Lost: []string{"checker-0"}}} {
		p, e := one(8, 9)
		p.Apply(first)
		p.Apply(assign.Change{Doubted: []string{"checker-0"}})
		with := p.Checkers(e.ID)
		if len(with) != 9 {
			t.Fatalf("%v", with)
		}
		if p.Apply(assign.Change{Lost: []string{"checker-0"}}); !slices.Equal(p.Checkers(e.ID), with) {
			t.Errorf("%v after it was lost, %v before", p.Checkers(e.ID), with)
		}
		if added, removed := moved(p.Apply(assign.Change{Leave: []string{"checker-0"}})); added != 0 || removed != 1 || p.Stats().Substitutes != 0 {
			t.Errorf("%d added and %d removed as it leaves: %v", added, removed, p.Checkers(e.ID))
		}
	}
}

// TestSubstitutesYieldToSeats where ceilings leave no room for both, but for those
// without which fewer than two live checkers would be left.
func TestSubstitutesYieldToSeats(t *testing.T) {
	for _, tt := range []struct{ seats, doubt, more, substitutes, short int }{
		{3, 1, 1, 0, 0}, {3, 2, 1, 1, 0}, {3, 1, 2, 0, 0}, {3, 2, 2, 1, 0}, {2, 2, 2, 2, 1},
	} {
		p := assign.New(assign.Options{})
		all := endpoints(2, 1, p.Class(assign.Class{}), tt.seats)
		for i := range all {
			all[i].Rate = 1000
		}
		all[1].Redundancy = tt.more
		fleet := checkers(tt.seats+tt.doubt+tt.more-1, 6)
		for i := range fleet {
			fleet[i].MaxChecksPerSecond = 1
		}
		p.Apply(assign.Change{Upsert: all[:1], Join: fleet})
		seats := p.Checkers(all[0].ID)
		p.Apply(assign.Change{Doubted: seats[:tt.doubt]})
		if st := p.Stats(); st.Substitutes != tt.doubt {
			t.Fatalf("%+v: %+v", tt, st)
		}
		p.Apply(assign.Change{Upsert: all[1:]})
		if st := p.Stats(); st.Substitutes != tt.substitutes || st.Uncheckable+st.UnderReplicated != tt.short {
			t.Errorf("%+v: %+v", tt, st)
		}
		if got := p.Checkers(all[0].ID); len(got) != tt.seats+tt.substitutes {
			t.Errorf("%+v: %v, of whom %v had seats", tt, got, seats)
		}
	}
}

// TestSubstituteStays makes the substitute permanent when the seat is given up.
func TestSubstituteStays(t *testing.T) {
	p, e := one(2, 5)
	seats := p.Checkers(e.ID)
	p.Apply(assign.Change{Lost: seats[:1]})
	with := p.Checkers(e.ID)
	d := p.Apply(assign.Change{Leave: seats[:1]})
	if added, removed := moved(d); added != 0 || removed != 1 {
		t.Errorf("%+v, the substitute was there already", d)
	}
	want := slices.DeleteFunc(with, func(id string) bool { return id == seats[0] })
	if got := p.Checkers(e.ID); !slices.Equal(got, want) || p.Stats().Substitutes != 0 {
		t.Errorf("%v, not %v", got, want)
	}
}

// TestUncheckable tells when nobody can check an endpoint, and when someone can.
func TestUncheckable(t *testing.T) {
	p := assign.New(assign.Options{})
	redis := p.Class(assign.Class{Needs: []health.Ability{health.Redis}})
	e := endpoints(1, 1, redis, 2)[0]
	able := checker(1, 2)
	able.Abilities = health.Abilities{health.Redis: {}}

	d := p.Apply(assign.Change{Upsert: []assign.Endpoint{e}, Join: []health.Checker{checker(0, 2)}})
	if !slices.Equal(d.Uncheckable, []assign.Uncheckable{{Endpoint: e.ID, Class: redis, Reason: assign.TooFew}}) || p.Stats().Uncheckable != 1 {
		t.Fatalf("%+v", d)
	}
	e.Class = p.Class(assign.Class{Needs: []health.Ability{health.Thrift}})
	d = p.Apply(assign.Change{Upsert: []assign.Endpoint{e}})
	if !slices.Equal(d.Uncheckable, []assign.Uncheckable{{Endpoint: e.ID, Class: e.Class, Reason: assign.TooFew}}) {
		t.Fatalf("another class, for another reason: %+v", d)
	}
	e.Class = redis
	p.Apply(assign.Change{Upsert: []assign.Endpoint{e}})
	d = p.Apply(assign.Change{Join: []health.Checker{able}})
	if !slices.Equal(d.Checkable, []health.EndpointID{e.ID}) || p.Stats().UnderReplicated != 1 {
		t.Fatalf("%+v", d)
	}
	if d = p.Apply(assign.Change{Lost: []string{able.ID}}); len(d.Uncheckable) != 0 {
		t.Fatalf("the seat is kept: %+v", d)
	}
	if d = p.Apply(assign.Change{Leave: []string{able.ID}}); len(d.Uncheckable) != 1 {
		t.Fatalf("%+v", d)
	}
}

// TestSettling keeps the first checker back from getting everything.
func TestSettling(t *testing.T) {
	const n = 300
	p := assign.New(assign.Options{})
	fleet, all := checkers(9, 3), endpoints(n, 3, p.Class(assign.Class{}), 3)
	p.Apply(assign.Change{Upsert: all[:200], Join: fleet})
	plan := p.Plan()

	again := assign.New(assign.Options{})
	again.Class(assign.Class{})
	again.Restore(plan)
	again.Apply(assign.Change{Settling: true, Upsert: all[:100]})
	for _, c := range fleet[:6] {
		d := again.Apply(assign.Change{Settling: true, Join: []health.Checker{c}})
		if len(d.Moves)+len(d.Uncheckable) != 0 {
			t.Fatalf("%s is back and %+v", c.ID, d)
		}
	}
	d := again.Apply(assign.Change{Settling: true, Upsert: all[200:]})
	if len(d.Moves) != 0 || again.Stats().Uncheckable != 100 {
		t.Fatalf("new endpoints do not wait: %+v", d)
	}
	for id := range 100 {
		if got := again.Checkers(health.EndpointID(id)); !slices.Equal(got, p.Checkers(health.EndpointID(id))) {
			t.Fatalf("endpoint %d was stored with %v and has %v", id, p.Checkers(health.EndpointID(id)), got)
		}
	}
	again.Apply(assign.Change{Leave: names(fleet[6:])})
	again.Apply(assign.Change{Upsert: all[100:200]}) // after settling, and still finds its seats
	for id := 100; id < 200; id++ {
		for _, c := range p.Checkers(health.EndpointID(id)) {
			if c < "checker-6" && !slices.Contains(again.Checkers(health.EndpointID(id)), c) {
				t.Fatalf("endpoint %d was stored with %s and has %v", id, c, again.Checkers(health.EndpointID(id)))
			}
		}
	}
	if st := again.Stats(); st.Checks != 3*n || st.Live != 6 || st.UnderReplicated+st.Uncheckable != 0 {
		t.Errorf("%+v", st)
	}
}

// TestFirstStart gives the same plan in whatever order the checkers come.
func TestFirstStart(t *testing.T) {
	fleet := checkers(12, 3)
	var digests []uint64
	for range 2 {
		p := assign.New(assign.Options{})
		all := endpoints(1000, 3, p.Class(assign.Class{}), 3)
		p.Apply(assign.Change{Settling: true, Upsert: all})
		for _, c := range fleet {
			p.Apply(assign.Change{Settling: true, Join: []health.Checker{c}})
		}
		p.Apply(assign.Change{})
		checkBalance(t, p, fleet, "first start")
		digests = append(digests, p.Digest())
		slices.Reverse(fleet)
	}
	if digests[0] != digests[1] || digests[0] == 0 {
		t.Errorf("%x", digests)
	}
}

// TestDigest pins the plan of a small fleet: it must be the same in every
// process, on every machine and in every release.
func TestDigest(t *testing.T) {
	p := assign.New(assign.Options{})
	p.Apply(assign.Change{Upsert: endpoints(5000, 4, p.Class(assign.Class{}), 3), Join: checkers(30, 4)})
	if got, want := p.Digest(), uint64(0xf3a3ca98e2a38f3e); got != want {
		t.Errorf("%#x instead of %#x", got, want)
	}
}

// TestRedundancyAlone adds and takes away seats, and moves hardly any.
func TestRedundancyAlone(t *testing.T) {
	p := assign.New(assign.Options{})
	all := endpoints(500, 4, p.Class(assign.Class{}), 3)
	p.Apply(assign.Change{Upsert: all, Join: checkers(20, 4)})
	for _, redundancy := range []int{5, 2, 4} {
		fewer := redundancy < all[0].Redundancy
		for i := range all {
			all[i].Redundancy = redundancy
		}
		added, removed := moved(p.Apply(assign.Change{Upsert: all}))
		if fewer && added > 100 || !fewer && removed > 100 {
			t.Errorf("to %d: %d added, %d removed", redundancy, added, removed)
		}
		if st := p.Stats(); st.Checks != redundancy*len(all) {
			t.Errorf("%+v with %d each", st, redundancy)
		}
	}
}

// TestSubstituteZone keeps the live ones apart: a substitute is not in the zone
// of the last live checker, but in one whose checker was lost.
func TestSubstituteZone(t *testing.T) {
	p := assign.New(assign.Options{})
	fleet, all := checkers(12, 3), endpoints(50, 3, p.Class(assign.Class{}), 3)
	p.Apply(assign.Change{Upsert: all, Join: fleet})
	zone := map[string]health.Locality{}
	for _, c := range fleet {
		zone[c.ID] = c.Locality
	}
	seats := p.Checkers(0)
	p.Apply(assign.Change{Lost: seats[:2]})
	for _, id := range p.Checkers(0) {
		if !slices.Contains(seats, id) && zone[id] == zone[seats[2]] {
			t.Errorf("%s is in the zone of %s, the only one left", id, seats[2])
		}
	}
}

// TestDivided: the endpoints of a divided zone have two live checkers there, as far as
// the zone has them, and no others move; it ends where it began.
func TestDivided(t *testing.T) {
	p := assign.New(assign.Options{})
	list, fleet := endpoints(600, 3, p.Class(assign.Class{}), 3), checkers(12, 3)
	zones := map[string]health.Locality{}
	for _, c := range fleet {
		zones[c.ID] = c.Locality
	}
	p.Apply(assign.Change{Upsert: list, Join: fleet})
	before, divided, blind := p.Digest(), list[0].Locality, ""
	home := func(e assign.Endpoint) (n int) {
		for _, id := range p.Checkers(e.ID) {
			if zones[id] == e.Locality && id != blind {
				n++
			}
		}
		return n
	}
	p.Apply(assign.Change{Divided: []health.Locality{divided}})
	for _, e := range list {
		want := 1
		if e.Locality == divided {
			want = 2
		}
		if got := home(e); got != want || len(p.Checkers(e.ID)) != 2+want {
			t.Fatalf("endpoint %d of %v has %v", e.ID, e.Locality, p.Checkers(e.ID))
		}
	}
	if d := p.Apply(assign.Change{Divided: []health.Locality{divided}}); len(d.Moves) > 0 {
		t.Errorf("said again, it moves %+v", d.Moves)
	}
	for _, id := range p.Checkers(list[0].ID) {
		if zones[id] == divided {
			blind = id
		}
	}
	p.Apply(assign.Change{Blind: []string{blind}})
	if got := home(list[0]); got != 2 {
		t.Errorf("beside a blind one, %d are in the zone", got)
	}
	i := slices.IndexFunc(fleet, func(c health.Checker) bool { return c.ID == blind })
	p.Apply(assign.Change{Join: fleet[i : i+1], Undivided: []health.Locality{divided}})
	if p.Digest() != before || p.Stats().Substitutes != 0 {
		t.Errorf("%d substitutes are left", p.Stats().Substitutes)
	}
}
