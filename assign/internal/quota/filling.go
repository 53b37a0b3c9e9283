package quota

import (
	"math"
	"math/bits"
)

// filling tracks how much of each demand is in each cohort.
type filling struct {
	cohorts      []cohort
	checks, cost []int64 // poured into each cohort
	held         []int64 // part of checks that was below the cohort's ceilings at the last look
	width        []int64 // checks that each cohort takes for one unit of level
	sum          int64   // checks of all demands
	steady       int     // number of rounds in which little has moved
}

// widthBits is the precision of widths beyond that of full weights.
const widthBits = 20

// width returns the width of a cohort whose ceilings leave room.
func (c *cohort) width() int64 { return c.mass() << widthBits / FullWeight }

func newFilling(cohorts []cohort, demands []Demand) *filling {
	n := len(cohorts)
	f := &filling{cohorts: cohorts, checks: make([]int64, n), cost: make([]int64, n), held: make([]int64, n), width: make([]int64, n)}
	for i := range demands {
		f.sum += demands[i].Seats
	}
	for g := range cohorts {
		f.width[g] = cohorts[g].width()
	}
	return f
}

// run pours all demands, repeatedly, until little moves.
func (f *filling) run(demands []Demand) {
	const rounds = 24 // more do not help
	for range rounds {
		for i := range demands {
			f.pour(&demands[i])
		}
		if f.settled() {
			return
		}
		f.narrow()
	}
}

// settled reports whether cohorts hold about as much as at the last call. While some
// cohorts are above their ceilings, it takes more rounds, since others may take the
// excess.
func (f *filling) settled() bool {
	const even, patience = 10000, 3
	moved, above := int64(0), int64(0)
	for g, n := range f.checks {
		held := min(n, f.fitting(g))
		moved += max(held-f.held[g], f.held[g]-held)
		above += n - held
		f.held[g] = held
	}
	if moved*even > f.sum {
		f.steady = 0
		return false
	}
	f.steady++
	return above*even <= f.sum || f.steady > patience
}

// fitting returns the part of a cohort's content below its ceilings.
func (f *filling) fitting(g int) int64 {
	c := &f.cohorts[g]
	if c.Ceiling == Unlimited || f.cost[g] == 0 {
		return math.MaxInt64
	}
	return scale(f.checks[g], c.checkers*c.Ceiling, f.cost[g])
}

// pour lets a demand fill its cohorts on top of other demands.
func (f *filling) pour(d *Demand) {
	f.add(d, -1)
	d.level = lowest(d.level, d.Seats, func(level int64) (sum int64) {
		for z := range d.cohorts {
			sum += f.inZone(d, z, level)
		}
		return sum
	})
	for z := range d.cohorts {
		f.divide(d, z)
	}
	f.add(d, 1)
}

// add adds a demand's content to its cohorts, or removes it if sign is -1.
func (f *filling) add(d *Demand, sign int64) {
	for _, cohorts := range d.cohorts {
		for _, g := range cohorts {
			if d.took[g] == 0 {
				continue
			}
			f.checks[g] += sign * d.took[g]
			f.cost[g] += sign * scale(d.took[g], d.Cost, d.Seats)
		}
	}
}

// divide divides a zone's part of a demand among its cohorts.
func (f *filling) divide(d *Demand, z int) {
	level, sum := d.level, f.inZone(d, z, d.level)
	if sum == 0 {
		for _, g := range d.cohorts[z] {
			d.took[g] = 0
		}
		return
	}
	if f.below(d, z, level) != sum {
		level = lowest(level, sum, func(level int64) int64 { return f.below(d, z, level) })
	}
	volume := f.below(d, z, level)
	for _, g := range d.cohorts[z] {
		if d.took[g] = f.takes(d, g, level); volume > sum {
			d.took[g] = scale(d.took[g], sum, volume)
		}
	}
}

// inZone returns the part of a demand that a zone takes at a level, within its bounds.
func (f *filling) inZone(d *Demand, z int, level int64) int64 {
	if d.Lo[z] == d.Hi[z] {
		return d.Hi[z] // as where no seat is allowed
	}
	return min(max(f.below(d, z, level), d.Lo[z]), d.Hi[z])
}

// below returns the part of a demand that fits into a zone's cohorts below a level.
func (f *filling) below(d *Demand, z int, level int64) (sum int64) {
	for _, g := range d.cohorts[z] {
		sum += f.takes(d, g, level)
	}
	return sum
}

// takes returns the part of a demand that fills a cohort up to a level. No checker has an
// endpoint twice.
func (f *filling) takes(d *Demand, g int32, level int64) int64 {
	c := &f.cohorts[g]
	hi, lo := bits.Mul64(uint64(level), uint64(f.width[g]))
	if hi>>widthBits > 0 {
		return c.checkers * d.Each[c.Zone]
	}
	n := int64(hi<<(64-widthBits)|lo>>widthBits) - f.checks[g]
	return max(min(n, c.checkers*d.Each[c.Zone]), 0)
}

// narrow makes cohorts narrower by their excess above their ceilings, so that others
// take it.
func (f *filling) narrow() {
	for g := range f.cohorts {
		full, fitting := f.cohorts[g].width(), f.fitting(g)
		if n := f.checks[g]; n > fitting || f.width[g] < full {
			f.width[g] = max(min(scale(f.width[g], fitting, max(n, 1)), full), 1)
		}
	}
}

// lowest returns the lowest level at which the given number of checks is reached, or
// as many as possible. It searches outwards from the level around.
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

// scale returns n*factor/divisor, or the largest number on overflow.
func scale(n, factor, divisor int64) int64 {
	const limit = math.MaxInt64 / 2
	hi, lo := bits.Mul64(uint64(n), uint64(factor))
	if hi >= uint64(divisor) {
		return limit
	}
	q, _ := bits.Div64(hi, lo, uint64(divisor))
	return int64(min(q, limit))
}
