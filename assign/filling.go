package assign

import "math/bits"

// filling tells what the zones of a class hold when their checkers are filled
// up to a level: each has its weight's part of it, up to its ceiling.
type filling struct {
	class *class
	most  int64 // no level needs to be higher
	caps  [][]capped
}

// capped is a checker with a ceiling.
type capped struct {
	weight int64
	checks int64 // that it can do, if they cost what all cost on average
}

func (p *Planner) filling(c *class, d *demand) filling {
	f := filling{class: c}
	least := int64(0)
	for _, mass := range c.mass {
		if mass > 0 && (least == 0 || mass < least) {
			least = mass
		}
	}
	if p.ceilings > 0 && d.cost > 0 {
		f.caps, least = p.caps(c, d), min(least, leastWeight)
	}
	f.most = d.seats<<quotaBits*fullWeight/max(least, 1) + 1
	return f
}

// caps lists the ceilings of a class's checkers by zone.
func (p *Planner) caps(c *class, d *demand) [][]capped {
	caps := make([][]capped, len(c.seats))
	for i, word := range c.able {
		for ; word != 0; word &= word - 1 {
			s := i*64 + bits.TrailingZeros64(word)
			if can := p.can[s]; can.ceiling != unlimited {
				hi, lo := bits.Mul64(uint64(can.ceiling), uint64(d.seats))
				checks, _ := bits.Div64(hi%uint64(d.cost), lo, uint64(d.cost))
				caps[p.home[s]] = append(caps[p.home[s]], capped{can.weight, int64(min(checks, uint64(d.seats)))})
			}
		}
	}
	return caps
}

// holds is how many checks a zone takes at a level.
func (f *filling) holds(z int, level int64) int64 {
	mass, sum := f.class.mass[z], int64(0)
	if f.caps != nil {
		for _, c := range f.caps[z] {
			mass -= c.weight
			sum += min(part(level, c.weight), c.checks)
		}
	}
	return sum + part(level, mass)
}

// part is what a weight holds at a level.
func part(level, weight int64) int64 {
	hi, lo := bits.Mul64(uint64(level), uint64(weight))
	checks, _ := bits.Div64(hi, lo, fullWeight<<quotaBits)
	return int64(checks)
}

// lowest is the lowest level at which a number of checks is reached, or as many
// of them as ceilings allow.
func (f *filling) lowest(checks int64, reached func(level int64) int64) int64 {
	checks = min(checks, reached(f.most))
	low, high := int64(0), f.most
	for low < high {
		if middle := low + (high-low)/2; reached(middle) >= checks {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// quota is the level at which a zone holds so many checks.
func (f *filling) quota(z int, checks int64) int64 {
	if f.caps == nil || len(f.caps[z]) == 0 {
		return (checks<<quotaBits*fullWeight + f.class.mass[z] - 1) / f.class.mass[z]
	}
	return f.lowest(checks, func(level int64) int64 { return f.holds(z, level) })
}
