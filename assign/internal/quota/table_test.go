package quota_test

import (
	"math"
	"testing"

	"hdsd/assign/internal/quota"
	"hdsd/health"

	"pgregory.net/rapid"
)

func TestCapacityOf(t *testing.T) {
	for _, tt := range []struct {
		weight, ceiling float64
		want            quota.Capacity
	}{
		{0, 0, quota.Default},
		{2.5, 0.1, quota.Capacity{Weight: 2500, Ceiling: 100}},
		{1e-9, 1e12, quota.Capacity{Weight: 1, Ceiling: quota.Unlimited}},
		{1e9, -1, quota.Capacity{Weight: 100_000, Ceiling: quota.Unlimited}},
	} {
		if got := quota.CapacityOf(&health.Checker{Weight: tt.weight, MaxChecksPerSecond: tt.ceiling}); got != tt.want {
			t.Errorf("weight %g, ceiling %g: got %+v, want %+v", tt.weight, tt.ceiling, got, tt.want)
		}
	}
}

// join puts checkers of one class into zones by turns.
func join(table *quota.Table, zones int, all ...quota.Capacity) {
	for i, c := range all {
		table.Join(int32(i), quota.Kind{Zone: int32(i % zones), Capacity: c, Classes: "\x01"})
	}
}

// anywhere is a demand of class 0 that any zone may serve.
func anywhere(zones, endpoints, seats int, rate int64) quota.Demand {
	d := quota.NewDemand(0, zones)
	d.Add(endpoints, seats, rate)
	for z := range zones {
		d.Allow(int32(z), endpoints, 0, seats)
	}
	return d
}

func TestSharesGoByWeight(t *testing.T) {
	table := quota.NewTable()
	join(table, 1, quota.Capacity{Weight: 1000, Ceiling: quota.Unlimited}, quota.Capacity{Weight: 3000, Ceiling: quota.Unlimited})
	table.Level([]quota.Demand{anywhere(1, 400, 1, 0)}, 10)
	for _, tt := range []struct {
		level       quota.Level
		light, full int32
	}{{quota.Share, 100, 300}, {quota.Limit, 110, 330}, {quota.Bound, 111, 333}, {quota.Breach, 112, 335}} {
		light, full := table.Of(tt.level, 0), table.Of(tt.level, 1)
		if light < tt.light-1 || light > tt.light+1 || full < tt.full-1 || full > tt.full+1 {
			t.Errorf("quota %d: %d and %d, want %d and %d", tt.level, light, full, tt.light, tt.full)
		}
		above := table.Above(tt.level)
		if above(0, light) || !above(0, light+1) || above(1, full) || !above(1, full+1) || above(7, 1000) {
			t.Errorf("quota %d: who is above it", tt.level)
		}
	}
	if n := table.Of(quota.Any, 0); n != math.MaxInt32 {
		t.Errorf("no quota at all is %d", n)
	}
}

// TestCeilingsPassOn what does not fit to others.
func TestCeilingsPassOn(t *testing.T) {
	table := quota.NewTable()
	join(table, 2, quota.Capacity{Weight: 1000, Ceiling: 50_000}, quota.Default, quota.Default)
	table.Level([]quota.Demand{anywhere(2, 350, 1, 1000)}, 10)
	if a, b := table.Of(quota.Share, 0), table.Of(quota.Share, 1); a < 49 || a > 51 || b < 149 || b > 151 {
		t.Errorf("shares of %d and %d, want 50 and 150", a, b)
	}
}

// TestShares holds random fleets to what the demands say: all is placed, each zone
// is within its bounds, and no checker has an endpoint twice.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zones := rapid.IntRange(1, 4).Draw(t, "zones")
		weights := rapid.SliceOfN(rapid.SampledFrom([]int64{500, 1000, 4000}), zones, 20).Draw(t, "weights")
		table, in := quota.NewTable(), make([]int, zones)
		for i, w := range weights {
			table.Join(int32(i), quota.Kind{Zone: int32(i % zones), Capacity: quota.Capacity{Weight: w, Ceiling: quota.Unlimited}, Classes: "\x01"})
			in[i%zones]++
		}
		endpoints := rapid.IntRange(1, 5000).Draw(t, "endpoints")
		d := quota.NewDemand(0, zones)
		d.Add(endpoints, zones, 0)
		for z := range zones { // one in each zone
			d.Allow(int32(z), endpoints, 1, 1)
		}
		table.Level([]quota.Demand{d}, 10)
		sums := make([]int, zones)
		for i := range weights {
			n := int(table.Of(quota.Share, int32(i)))
			if sums[i%zones] += n; n > endpoints+1 {
				t.Errorf("a share of %d of %d endpoints", n, endpoints)
			}
		}
		for z, sum := range sums {
			if sum < endpoints-in[z] || sum > endpoints+endpoints/1000+2*in[z] {
				t.Errorf("shares of %d in zone %d with %d checkers, want %d", sum, z, in[z], endpoints)
			}
		}
	})
}

// TestCohortsAreForgotten when most are empty.
func TestCohortsAreForgotten(t *testing.T) {
	const fleet = 4
	table, clears := quota.NewTable(), 0
	for i := range 1000 {
		kind := quota.Kind{Capacity: quota.Capacity{Weight: int64(1000 + i), Ceiling: quota.Unlimited}, Classes: "\x01"}
		table.Join(int32(i%fleet), kind)
		if table.Stale(fleet) {
			clears++
			table.Clear()
			for slot := range int32(fleet) {
				table.Join(slot, kind)
			}
			if table.Stale(fleet) {
				t.Fatal("stale after all joined anew")
			}
		}
	}
	if clears < 20 || clears > 100 {
		t.Errorf("%d times stale in 1000 changes", clears)
	}
}
