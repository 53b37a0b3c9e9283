package assign

import (
	"math"
	"math/bits"
)

// filling is how checks fill up the cohorts, as evenly as it can be.
type filling struct {
	cohorts      []cohort
	checks, cost []int64 // what is poured into each cohort
	has          []int64 // what of it is below its ceilings, when last looked
	heft         []int64 // what it weighs
	sum          int64   // of all demands
	calm         int     // how often little has moved
}

// weightBits are how much finer weights are counted here than in full ones.
const weightBits = 20

// heft is what the checkers of a cohort weigh together.
func (g *cohort) heft() int64 { return g.mass() << weightBits / fullWeight }

func (p *Planner) filling(demands []demand) filling {
	n := len(p.cohorts)
	f := filling{cohorts: p.cohorts, checks: make([]int64, n), cost: make([]int64, n), has: make([]int64, n), heft: make([]int64, n)}
	for i := range demands {
		f.sum += demands[i].seats
	}
	for g := range p.cohorts {
		f.heft[g] = p.cohorts[g].heft()
	}
	return f
}

// settled tells whether cohorts have about as much as when it was asked before.
// As long as some have too much, those that are to take it may be about to.
func (f *filling) settled() bool {
	const even, patience = 10000, 3
	moved, above := int64(0), int64(0)
	for g, n := range f.checks {
		has := min(n, f.most(g))
		moved += max(has-f.has[g], f.has[g]-has)
		above += n - has
		f.has[g] = has
	}
	if moved*even > f.sum {
		f.calm = 0
		return false
	}
	f.calm++
	return above*even <= f.sum || f.calm > patience
}

// most is how much a cohort can have below its ceilings of what is poured into it.
func (f *filling) most(g int) int64 {
	at := &f.cohorts[g]
	if at.ceiling == unlimited || f.cost[g] == 0 {
		return math.MaxInt64
	}
	return scale(f.checks[g], at.seats*at.ceiling, f.cost[g])
}

// pour lets a demand fill up its cohorts over what others have poured.
func (f *filling) pour(d *demand) {
	f.put(d, -1)
	d.level = lowest(d.level, d.seats, func(level int64) (sum int64) {
		for z := range d.cohorts {
			sum += f.share(d, z, level)
		}
		return sum
	})
	for z := range d.cohorts {
		f.divide(d, z)
	}
	f.put(d, 1)
}

// put adds what a demand's cohorts have of it, or takes it away.
func (f *filling) put(d *demand, sign int64) {
	for _, cohorts := range d.cohorts {
		for _, g := range cohorts {
			if d.took[g] == 0 {
				continue
			}
			f.checks[g] += sign * d.took[g]
			f.cost[g] += sign * scale(d.took[g], d.cost, d.seats)
		}
	}
}

// divide parts what a zone takes among its cohorts.
func (f *filling) divide(d *demand, z int) {
	level, sum := d.level, f.share(d, z, d.level)
	if sum == 0 {
		for _, g := range d.cohorts[z] {
			d.took[g] = 0
		}
		return
	}
	if f.holds(d, z, level) != sum {
		level = lowest(level, sum, func(level int64) int64 { return f.holds(d, z, level) })
	}
	holds := f.holds(d, z, level)
	for _, g := range d.cohorts[z] {
		if d.took[g] = f.takes(d, g, level); holds > sum {
			d.took[g] = scale(d.took[g], sum, holds)
		}
	}
}

// share is how much of a demand a zone takes at a level, within what it must
// and can.
func (f *filling) share(d *demand, z int, level int64) int64 {
	if d.lo[z] == d.hi[z] {
		return d.hi[z] // as where nothing may go
	}
	return min(max(f.holds(d, z, level), d.lo[z]), d.hi[z])
}

// holds is that as if it had no bounds.
func (f *filling) holds(d *demand, z int, level int64) (sum int64) {
	for _, g := range d.cohorts[z] {
		sum += f.takes(d, g, level)
	}
	return sum
}

// takes is how much of a demand a cohort takes until it is filled up to a level:
// no checker has an endpoint twice.
func (f *filling) takes(d *demand, g int32, level int64) int64 {
	at := &f.cohorts[g]
	hi, lo := bits.Mul64(uint64(level), uint64(f.heft[g]))
	if hi>>weightBits > 0 {
		return at.seats * d.each[at.zone]
	}
	n := int64(hi<<(64-weightBits)|lo>>weightBits) - f.checks[g]
	return max(min(n, at.seats*d.each[at.zone]), 0)
}

// lighten has cohorts weigh as much less as they have above their ceilings, so that
// others take it.
func (f *filling) lighten() {
	for g := range f.cohorts {
		full, most := f.cohorts[g].heft(), f.most(g)
		if n := f.checks[g]; n > most || f.heft[g] < full {
			f.heft[g] = max(min(scale(f.heft[g], most, max(n, 1)), full), 1)
		}
	}
}

// lowest is the lowest level at which a number of checks is reached, or as many
// of them as can be. It is looked for around one.
func lowest(around, checks int64, reached func(level int64) int64) int64 {
	const highest = math.MaxInt64 / 4
	low, high := around, around
	for step := int64(1); low > 0 && reached(low) >= checks; step *= 4 {
		high, low = low, max(low-step, 0)
	}
	for step := int64(1); reached(high) < checks; step *= 4 {
		if high >= highest/4 {
			return lowest(0, reached(high), reached)
		}
		low, high = high, high+step
	}
	for low < high {
		if middle := low + (high-low)/2; reached(middle) >= checks {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// scale is n*by/of, or a number that is more than any.
func scale(n, by, of int64) int64 {
	const most = math.MaxInt64 / 2
	hi, lo := bits.Mul64(uint64(n), uint64(by))
	if hi >= uint64(of) {
		return most
	}
	q, _ := bits.Div64(hi, lo, uint64(of))
	return int64(min(q, most))
}
