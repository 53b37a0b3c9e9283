package sim

import (
	"flag"
	"reflect"
	"testing"

	"hdsd/assign"
	"hdsd/test/sim/truth"
)

var seed = flag.Uint64("sim.seed", 0, "run with this seed only, instead of 1 to 3")

// end is how long a run takes, in steps: a minute.
const end = 60 * round

// eachSeed runs a scenario with every seed and checks its results.
func eachSeed(t *testing.T, scenario func(*fleet), check func(*testing.T, result)) {
	t.Helper()
	seeds := []uint64{1, 2, 3}
	if *seed != 0 {
		seeds = []uint64{*seed}
	}
	for _, s := range seeds {
		f := newFleet(s)
		scenario(f)
		r := f.run(end)
		t.Logf("seed %d: %s", s, r)
		before := t.Failed()
		check(t, r)
		if t.Failed() && !before {
			t.Logf("failed with -sim.seed=%d", s)
			for _, line := range append(r.falseDowns[:min(5, len(r.falseDowns))], r.flaps[:min(5, len(r.flaps))]...) {
				t.Log(line)
			}
		}
	}
}

// someOutages takes every fiftieth endpoint truly down for a while.
func someOutages(f *fleet, s truth.Span) {
	for i := 7; i < endpoints; i += 50 {
		f.world.Fail(i, s)
	}
}

// seen asks that every outage was seen, and soon.
func seen(t *testing.T, r result, mean, worst float64) {
	t.Helper()
	if r.outages == 0 || r.missed > 0 || r.meanDelay > mean || r.worst > worst {
		t.Errorf("outages %d, missed %d, delay mean %.2f (at most %.2f), worst %.1f (at most %.1f) rounds",
			r.outages, r.missed, r.meanDelay, mean, r.worst, worst)
	}
}

func noFalseDown(t *testing.T, r result) {
	t.Helper()
	if len(r.falseDowns) > 0 || r.rate > 0 {
		t.Errorf("%d false downs, rate %.1e", len(r.falseDowns), r.rate)
	}
}

func noFlap(t *testing.T, r result) {
	t.Helper()
	if len(r.flaps) > 0 {
		t.Errorf("%d flaps", len(r.flaps))
	}
}

func TestNothingWrong(t *testing.T) {
	eachSeed(t, func(f *fleet) { someOutages(f, truth.Span{From: 200, To: 400}) }, func(t *testing.T, r result) {
		if r.rate > 1e-5 {
			t.Errorf("false-down rate %.1e", r.rate)
		}
		seen(t, r, 3.5, 7)
	})
}

// cutOff keeps some of the checkers from reaching anything.
func (f *fleet) cutOff(count int) {
	for _, i := range f.random.Perm(observers)[:count] {
		f.world.Cut(i, truth.Span{From: 200, To: 500})
	}
}

// TestCutOff: one in twenty checkers reaches nothing.
func TestCutOff(t *testing.T) {
	eachSeed(t, func(f *fleet) { f.cutOff(observers / 20) }, func(t *testing.T, r result) {
		noFalseDown(t, r)
	})
}

// TestManyCutOff: so does one in five. Where all three checkers of an endpoint
// are among them nobody is left who could contradict.
func TestManyCutOff(t *testing.T) {
	eachSeed(t, func(f *fleet) { f.cutOff(observers / 5) }, func(t *testing.T, r result) {
		if r.rate > 1e-2 {
			t.Errorf("false-down rate %.1e", r.rate)
		}
	})
}

// TestPartition: a zone and all others do not reach each other. Its own
// checkers see what is in it, and are heard.
func TestPartition(t *testing.T) {
	eachSeed(t, func(f *fleet) {
		for i := range endpoints {
			for o := range observers {
				if (zoneOf(i) == 2) != (zoneOf(o) == 2) {
					f.world.CutPath(o, i, truth.Span{From: 200, To: 500})
				}
			}
		}
	}, func(t *testing.T, r result) {
		noFalseDown(t, r)
		noFlap(t, r)
	})
}

// TestZoneDeadBeforeItsCheckers: a zone's endpoints are truly down, as its own
// checkers see, too.
func TestZoneDeadBeforeItsCheckers(t *testing.T) {
	eachSeed(t, func(f *fleet) {
		for i := range endpoints {
			if zoneOf(i) == 2 {
				f.world.Fail(i, truth.Span{From: 200, To: 400})
			}
		}
	}, func(t *testing.T, r result) {
		noFalseDown(t, r)
		seen(t, r, 4, 7)
	})
}

// TestStuckUp: one in twenty checkers takes every probe for a success.
func TestStuckUp(t *testing.T) {
	eachSeed(t, func(f *fleet) {
		for _, i := range f.random.Perm(observers)[:observers/20] {
			f.world.Stick(i)
		}
		someOutages(f, truth.Span{From: 200, To: 400})
	}, func(t *testing.T, r result) {
		if r.missed*50 > r.outages {
			t.Errorf("%d of %d outages missed", r.missed, r.outages)
		}
	})
}

// TestRollingRestart restarts all checkers, three at a time; each is back after
// two seconds and says UNHEALTHY of all until it has probed.
func TestRollingRestart(t *testing.T) {
	eachSeed(t, func(f *fleet) {
		someOutages(f, truth.Span{From: 300, To: end})
		for i, n := range f.random.Perm(observers) {
			f.when(100+i/3*2*round, func() { f.restart(f.observers[n], outage*round) })
		}
	}, func(t *testing.T, r result) {
		noFalseDown(t, r)
		noFlap(t, r)
		seen(t, r, 3.5, 9)
	})
}

// TestRestartOfAllAtOnce is the same in one moment.
func TestRestartOfAllAtOnce(t *testing.T) {
	eachSeed(t, func(f *fleet) {
		someOutages(f, truth.Span{From: 100, To: end})
		for i := range observers {
			f.when(200, func() { f.restart(f.observers[i], outage*round+f.random.IntN(2*round)) })
		}
	}, func(t *testing.T, r result) {
		noFalseDown(t, r)
		noFlap(t, r)
		seen(t, r, 3.5, 9)
	})
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
	eachSeed(t, func(f *fleet) {
		f.world.Noise = 0 // so that any change that the truth did not make is the restart's
		for i := 3; i+4 < endpoints; i += 30 {
			f.world.Fail(i, truth.Span{From: 100, To: end})   // down before and after
			f.world.Fail(i+1, truth.Span{From: 320, To: end}) // fails meanwhile
			f.world.Fail(i+2, truth.Span{From: 100, To: 330}) // recovers meanwhile
			f.cutPaths(i+3, 1)
			f.cutPaths(i+4, 2)
		}
		f.when(299, func() { f.judge.flaps = nil }) // what the cut paths did
		f.when(300, func() {
			last, plan := f.kill()
			f.when(340, func() { f.revive(last, plan, 2*round) })
		})
	}, func(t *testing.T, r result) {
		noFlap(t, r)
		if want := endpoints / 30; len(r.falseDowns) != want {
			t.Errorf("%d false downs, want the %d that two of three cannot reach, before the restart", len(r.falseDowns), want)
		}
		if r.moved > 0 {
			t.Errorf("%d assignments moved", r.moved)
		}
		seen(t, r, 9, 16)
	})
}

// TestZoneDead takes a whole zone down, its checkers too.
func TestZoneDead(t *testing.T) {
	eachSeed(t, func(f *fleet) {
		for i := range endpoints {
			if zoneOf(i) == 2 {
				f.world.Fail(i, truth.Span{From: 200, To: 400})
			}
		}
		for _, o := range f.observers {
			if zoneOf(o.number) == 2 {
				f.when(200, func() { f.restart(o, 200) })
			}
		}
	}, func(t *testing.T, r result) {
		noFalseDown(t, r)
		seen(t, r, 3.5, 14)
	})
}

// TestJustMoved gives up one in ten checkers, whose endpoints go to others.
func TestJustMoved(t *testing.T) {
	eachSeed(t, func(f *fleet) {
		someOutages(f, truth.Span{From: 215, To: end})
		f.when(200, func() {
			var change assign.Change
			for _, i := range f.random.Perm(observers)[:observers/10] {
				f.observers[i].running = false
				change.Leave = append(change.Leave, checkerName(i))
			}
			f.coordinator.apply(f.step, change)
		})
	}, func(t *testing.T, r result) {
		noFalseDown(t, r)
		if r.moved < endpoints*redundancy/12 {
			t.Errorf("only %d assignments moved", r.moved)
		}
		seen(t, r, 4.5, 12)
	})
}

// TestRepeats: a seed gives the same run again, another a different one.
func TestRepeats(t *testing.T) {
	run := func(seed uint64) result {
		f := newFleet(seed)
		for i := range observers / 10 {
			f.world.Cut(i, truth.Span{From: 50, To: 90})
		}
		someOutages(f, truth.Span{From: 60, To: 150})
		return f.run(100)
	}
	first := run(7)
	if second := run(7); !reflect.DeepEqual(first, second) {
		t.Errorf("seed 7 gave %s, then %s", first, second)
	}
	if other := run(8); reflect.DeepEqual(first, other) {
		t.Errorf("seed 8 gave the same as 7: %s", first)
	}
}
