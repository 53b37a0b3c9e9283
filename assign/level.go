package assign

// demand is what endpoints ask of the checkers of a class, by zone.
type demand struct {
	seats  int64
	cost   int64   // checks in 1,000 seconds
	lo, hi []int64 // checks that must, and that can, go to each zone
}

// level sets what a checker's fair share is. For each class, the zones of its
// checkers are filled up evenly with what the class and the classes within it
// ask for, as far as the placement of these allows. The share of a checker is
// its weight's part of that of the zone.
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
		d.seats, d.cost = 0, 0
		clear(d.lo)
		clear(d.hi)
		for _, inner := range asking {
			if inner == c || p.classes[inner].within(at) {
				for _, k := range asks[inner] {
					p.ask(&d, &p.kinds[k], &p.classes[inner])
				}
			}
		}
		p.share(at, &d)
	}
}

// ask counts a kind's endpoints in, by their own zones.
func (p *Planner) ask(d *demand, k *kind, c *class) {
	for i, n := range k.counts {
		if n == 0 {
			continue
		}
		a := request{class: c, own: int32(i) - 1, count: int64(n)}
		seats := a.place(p, d, k, int(k.redundancy))
		d.seats += int64(n) * int64(seats)
		d.cost += int64(n) * int64(seats) * k.rate
	}
}

// request is endpoints of one kind and zone that ask for checkers of a class.
type request struct {
	*class
	own   int32
	count int64
}

// place sees to the regions, and tells how many seats there are for each.
func (a *request) place(p *Planner, d *demand, k *kind, seats int) int {
	everywhere := func(int32) bool { return true }
	if a.own == none {
		return a.among(d, k.zones, seats, everywhere)
	}
	inside := func(z int32) bool { return p.region[z] == p.region[a.own] }
	switch k.regions {
	case OwnOnly:
		return a.among(d, k.zones, seats, inside)
	case OwnFirst:
		first := a.among(d, k.zones, seats, inside)
		return first + a.among(d, k.zones, seats-first, func(z int32) bool { return !inside(z) })
	case Spread: // one in each as far as there are
		first := a.among(d, k.zones, min(seats, 1), inside)
		return first + a.among(d, k.zones, seats-first, everywhere)
	}
	return a.among(d, k.zones, seats, everywhere)
}

// among sees to the zones of some regions.
func (a *request) among(d *demand, zones Placement, seats int, in func(z int32) bool) int {
	own := a.own
	if own != none && !in(own) {
		if zones == OwnOnly {
			return 0
		}
		own = none
	}
	first := 0
	if own != none && (zones == OwnOnly || zones == OwnFirst) {
		first = min(seats, int(a.seats[own]))
		d.lo[own] += a.count * int64(first)
		d.hi[own] += a.count * int64(first)
		if zones == OwnOnly || first == seats {
			return first
		}
		inside, taken := in, own
		in = func(z int32) bool { return z != taken && inside(z) }
		own = none
	}
	return first + a.spread(d, zones, seats-first, own, in)
}

// spread puts one in each zone as far as there are, or as many as one likes.
func (a *request) spread(d *demand, placement Placement, seats int, own int32, in func(z int32) bool) int {
	zones, checkers := 0, 0
	for z, n := range a.seats {
		if n > 0 && in(int32(z)) {
			zones++
			checkers += int(n)
		}
	}
	seats = min(seats, checkers)
	for z, n := range a.seats {
		switch {
		case n == 0 || !in(int32(z)):
		case placement == Anywhere:
			d.hi[z] += a.count * int64(min(int(n), seats))
		default:
			if zones <= seats || int32(z) == own && seats > 0 {
				d.lo[z] += a.count
			}
			d.hi[z] += a.count * int64(min(int(n), max(1, seats-zones+1), seats))
		}
	}
	return seats
}

// share divides a demand among a class's checkers.
func (p *Planner) share(c *class, d *demand) {
	f := p.filling(c, d)
	load := func(z int, level int64) int64 { return min(max(f.holds(z, level), d.lo[z]), d.hi[z]) }
	low := f.lowest(d.seats, func(level int64) (sum int64) {
		for z := range c.seats {
			if c.seats[z] > 0 {
				sum += load(z, level)
			}
		}
		return sum
	})
	slack := int64(p.options.Slack)
	for z, n := range c.seats {
		if n > 0 {
			q := f.quota(z, load(z, low))
			c.share[z] = quota(q)
			c.limit[z] = quota(q * (100 + slack) / 100)
			c.bound[z] = quota(q * (1000 + 11*slack) / 1000)
			c.breach[z] = quota(q * (2000 + 23*slack) / 2000)
		}
	}
}
