package assign

// demand is what endpoints ask of the checkers of a class, by zone.
type demand struct {
	seats  int64
	lo, hi []int64 // checks that must, and that can, go to each zone
}

// level sets what a checker's fair share is. For each class, the zones of its
// checkers are filled up evenly with what the class and the classes within it
// ask for, as far as distinct zones and the own zone allow. The share of a
// checker is that of the zone divided among its checkers.
//
// A class within others so has the larger share if it asks for much, and its
// checkers are left out by the others when they are full.
func (p *Planner) level() {
	for c := range p.classes {
		clear(p.classes[c].share)
		clear(p.classes[c].limit)
		clear(p.classes[c].bound)
		clear(p.classes[c].breach)
	}
	var asking []int32 // classes that endpoints have
	asks := make([][]int32, len(p.classes))
	for k := range p.kinds {
		if c := p.kinds[k].class; p.kinds[k].count > 0 {
			if len(asks[c]) == 0 {
				asking = append(asking, int32(c))
			}
			asks[c] = append(asks[c], int32(k))
		}
	}
	zones := len(p.zoneHash)
	d := demand{lo: make([]int64, zones), hi: make([]int64, zones)}
	for _, c := range asking {
		at := &p.classes[c]
		d.seats = 0
		clear(d.lo)
		clear(d.hi)
		for _, inner := range asking {
			if inner == c || p.classes[inner].within(at) {
				for _, k := range asks[inner] {
					d.add(&p.kinds[k], &p.classes[inner])
				}
			}
		}
		p.share(at, &d)
	}
}

// add counts a kind's endpoints in.
func (d *demand) add(k *kind, c *class) {
	count, redundancy, zones := int64(k.count), min(int64(k.redundancy), int64(c.total)), int64(0)
	for _, n := range c.seats {
		if n > 0 {
			zones++
		}
	}
	d.seats += count * redundancy
	for z, n := range c.seats {
		if n == 0 {
			continue
		}
		if zones <= redundancy || int32(z) == k.zone {
			d.lo[z] += count
		}
		d.hi[z] += count * max(1, min(int64(n), redundancy-zones+1))
	}
}

// share divides a demand among a class's checkers.
func (p *Planner) share(c *class, d *demand) {
	zone := func(z int, level int64) int64 {
		return min(max(level*int64(c.seats[z])>>levelBits, d.lo[z]), d.hi[z])
	}
	low, high := int64(0), d.seats<<levelBits
	for low < high { // the lowest level at which all have a place
		middle, sum := low+(high-low)/2, int64(0)
		for z := range c.seats {
			if c.seats[z] > 0 {
				sum += zone(z, middle)
			}
		}
		if sum >= d.seats {
			high = middle
		} else {
			low = middle + 1
		}
	}
	slack := int64(p.options.Slack)
	for z, n := range c.seats {
		if n > 0 {
			load := zone(z, low)
			c.share[z] = over(load*100, int64(n)*100)
			c.limit[z] = over(load*(100+slack), int64(n)*100)
			c.bound[z] = over(load*(500+6*slack), int64(n)*500)
			c.breach[z] = over(load*(500+7*slack), int64(n)*500)
		}
	}
}

// levelBits is the precision of a level below one check.
const levelBits = 8

// over divides and rounds up.
func over(a, b int64) int32 { return int32((a + b - 1) / b) }
