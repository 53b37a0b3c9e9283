package sim

import (
	"flag"
	"reflect"
	"slices"
	"testing"

	"hdsd/test/sim/truth"
)

var seed = flag.Uint64("sim.seed", 0, "run with this seed only, instead of 1 to 3")

// small is a fleet for tests.
var small = func() Size {
	s := Of(1200)
	s.Observers, s.Failing = 60, 0.05
	return s
}()

// bound is what the default rule must not exceed in any run of a scenario.
type bound struct {
	falseDowns  int     // changes to down of what is up
	rate        float64 // of endpoint-rounds that are falsely down
	missed      float64 // of outages
	mean, worst float64 // rounds until an outage is seen
}

// bounds leave room for chance: a run has some sixty outages.
var bounds = map[string]bound{
	"nothing wrong":           {0, 0, 0, 2.4, 6},
	"reports in time":         {0, 0, 0, 2.3, 4},
	"1 % cut off":             {0, 0, 0, 2.5, 8},
	"5 % cut off":             {1, 1e-4, 0, 2.6, 11}, // where two of three are cut off
	"20 % cut off":            {4, 1e-3, 0.1, 3.5, 20},
	"zone partition":          {0, 0, 0, 3.2, 10},
	"zone dead":               {0, 0, 0, 2.5, 8},
	"zone dead, checkers not": {0, 0, 0, 2.4, 6},
	"5 % stuck up":            {0, 0, 0.05, 2.7, 8},
	"flapping":                {0, 0, 0.01, 2.4, 6},
	"mass failure":            {0, 0, 0, 2.4, 6},
	"brown-out":               {200, 3e-3, 0, 2.4, 6},
	"10 % just moved":         {0, 0, 0, 3, 12},
	"rolling restart":         {0, 0, 0, 3, 12},
	"all restart at once":     {0, 0, 0, 6, 14},
	"hdsd restart":            {0, 0, 0, 10, 18},
	"partition and restarts":  {0, 0, 0.05, 6, 22},
	"reassignment storm":      {0, 0, 0, 2.6, 12},
}

// seeds calls run with every seed.
func seeds(t *testing.T, run func(seed uint64) Result, check func(*testing.T, Result)) {
	t.Helper()
	list := []uint64{1, 2, 3}
	if *seed != 0 {
		list = []uint64{*seed}
	}
	for _, s := range list {
		r := run(s)
		t.Logf("seed %d: %s", s, r)
		before := t.Failed()
		check(t, r)
		if t.Failed() && !before {
			t.Logf("failed with -sim.seed=%d", s)
			for _, line := range r.Examples {
				t.Log(line)
			}
		}
	}
}

func TestScenarios(t *testing.T) {
	for _, s := range Scenarios()[:len(Scenarios())-len(liars())] {
		t.Run(s.Name, func(t *testing.T) {
			b, ok := bounds[s.Name]
			if !ok {
				t.Fatal("no bound is set for this scenario")
			}
			run := func(seed uint64) Result { return s.Run(small, seed, Rules()[:1]).Results[0] }
			seeds(t, run, func(t *testing.T, r Result) { b.check(t, r) })
		})
	}
}

// TestLiars: one checker that says the same of everything hides hardly any outage and takes
// hardly anything down, even while its zone is cut off or fails.
func TestLiars(t *testing.T) {
	const seeds, mostMissed, mostWrong = 20, 0.003, 1e-6
	for _, s := range liars() {
		t.Run(s.Name, func(t *testing.T) {
			var sum Result
			for n := range uint64(seeds) {
				r := s.Run(small, *seed+n+1, Rules()[:1]).Results[0]
				sum.Looked, sum.Wrong, sum.FalseDowns = sum.Looked+r.Looked, sum.Wrong+r.Wrong, sum.FalseDowns+r.FalseDowns
				sum.Outages, sum.Missed = sum.Outages+r.Outages, sum.Missed+r.Missed
				sum.Delays, sum.Examples = append(sum.Delays, r.Delays...), append(sum.Examples, r.Examples...)
			}
			t.Log(sum)
			if missed := float64(sum.Missed) / float64(sum.Outages); missed > mostMissed || sum.Rate() > mostWrong {
				t.Errorf("%d of %d outages missed, false-down rate %.1e: %v", sum.Missed, sum.Outages, sum.Rate(), sum.Examples)
			}
		})
	}
}

func (b bound) check(t *testing.T, r Result) {
	t.Helper()
	if r.FalseDowns > b.falseDowns || r.Rate() > b.rate {
		t.Errorf("%d false downs (at most %d), rate %.1e (at most %.1e)", r.FalseDowns, b.falseDowns, r.Rate(), b.rate)
	}
	mean, worst := r.Delay(1)
	if missed := float64(r.Missed) / float64(r.Outages); missed > b.missed || mean > b.mean || worst > b.worst {
		t.Errorf("%.2f of %d outages missed (at most %.2f), delay mean %.2f (at most %.2f), worst %.1f (at most %.1f) rounds",
			missed, r.Outages, b.missed, mean, b.mean, worst, b.worst)
	}
}

// TestEveryRule: no rule calls anything down where nothing is wrong, but for
// the one to which any voice is enough, and each sees what is down.
func TestEveryRule(t *testing.T) {
	for i, r := range Scenarios()[0].Run(small, 1, Rules()).Results {
		name := Rules()[i].Name
		t.Logf("%s: %s", name, r)
		if r.Missed > 0 || r.Outages == 0 {
			t.Errorf("%s: %d of %d outages missed", name, r.Missed, r.Outages)
		}
		if (r.Rate() > 1e-5) != (name == "any") {
			t.Errorf("%s: false-down rate %.1e", name, r.Rate())
		}
	}
}

// cutPaths keeps some of an endpoint's checkers, chosen at random,
// from reaching it.
func (f *fleet) cutPaths(endpoint, count int) {
	checkers := f.coordinator.planner.Checkers(f.list[endpoint].ID)
	f.random.Shuffle(len(checkers), func(i, j int) { checkers[i], checkers[j] = checkers[j], checkers[i] })
	for _, id := range checkers[:count] {
		for _, o := range f.observers {
			if checkerName(o.number) == id {
				f.world.CutPath(o.number, endpoint, truth.Span{From: 100, To: end})
			}
		}
	}
}

// TestCoordinatorRestart kills the coordinator and starts it again with what
// it stored. Some endpoints are down all the while, some fail and some recover
// meanwhile, and of some one or two of three checkers say that they are down.
func TestCoordinatorRestart(t *testing.T) {
	calm := small
	calm.Noise = 0 // so that any change that the truth did not make is the restart's
	var f *fleet
	run := func(seed uint64) Result {
		f = newFleet(calm, seed, Rules()[0])
		for i := 3; i+4 < f.Endpoints; i += 30 {
			f.world.Fail(i, truth.Span{From: 100, To: end})   // down before and after
			f.world.Fail(i+1, truth.Span{From: 320, To: end}) // fails meanwhile
			f.world.Fail(i+2, truth.Span{From: 100, To: 330}) // recovers meanwhile
			f.cutPaths(i+3, 1)
			f.cutPaths(i+4, 2)
		}
		f.when(299, func() { f.contenders[0].judge.flaps = 0 }) // what the cut paths did
		f.when(300, func() {
			plan := f.kill()
			f.when(340, func() { f.revive(plan, 2*round) })
		})
		f.run(end)
		return f.contenders[0].judge.result()
	}
	seeds(t, run, func(t *testing.T, r Result) {
		if r.Flaps > 0 || f.moved > 0 {
			t.Errorf("%d flaps, %d assignments moved", r.Flaps, f.moved)
		}
		if want := f.Endpoints / 30; r.FalseDowns != want {
			t.Errorf("%d false downs, want the %d that two of three cannot reach, before the restart", r.FalseDowns, want)
		}
		if mean, worst := r.Delay(1); r.Missed > 0 || mean > 9 || worst > 18 {
			t.Errorf("%d outages missed, delay mean %.2f, worst %.1f rounds", r.Missed, mean, worst)
		}
	})
}

// TestStuckCheckersAreOutnumbered has two checkers of the same endpoints take every probe for a
// success. They miss what fails that only one of them has; when what both of them have
// fails after that, it is seen by others who check it, too, and by then nothing else
// is checked by more than it was.
func TestStuckCheckersAreOutnumbered(t *testing.T) {
	var f *fleet
	var shared int
	run := func(seed uint64) Result {
		f, shared = newFleet(small, seed, Rules()[0]), 0
		checkers := f.coordinator.planner.Checkers(f.list[0].ID)[:2]
		for _, id := range checkers {
			f.world.Stick(f.byID[id].number)
		}
		for i := range f.list {
			has := 0
			for _, id := range f.coordinator.planner.Checkers(f.list[i].ID) {
				if slices.Contains(checkers, id) {
					has++
				}
			}
			switch {
			case has == 2:
				shared++
				f.world.Fail(i, truth.Span{From: 30 * round, To: 50 * round})
			case has == 1 && i%3 == 0:
				f.world.Fail(i, truth.Span{From: settled, To: 25 * round})
			}
		}
		f.run(end)
		return f.contenders[0].judge.result()
	}
	seeds(t, run, func(t *testing.T, r Result) {
		if r.Missed > 0 || r.FalseDowns > 0 {
			t.Errorf("%d outages of %d missed, %d false downs", r.Missed, r.Outages, r.FalseDowns)
		}
		if f.moved != 2*shared || shared == 0 {
			t.Errorf("%d endpoints have both, and %d assignments were added, want two for each", shared, f.moved)
		}
	})
}

// TestRepeats: a seed gives the same run again, another a different one.
func TestRepeats(t *testing.T) {
	run := func(seed uint64) Outcome { return Scenarios()[0].Run(small, seed, Rules()) }
	first := run(7)
	if second := run(7); !reflect.DeepEqual(first, second) {
		t.Errorf("seed 7 gave %v, then %v", first, second)
	}
	if other := run(8); reflect.DeepEqual(first, other) {
		t.Errorf("seed 8 gave the same as 7: %v", first)
	}
}
