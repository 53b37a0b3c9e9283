package assign

import (
	"cmp"
	"slices"
)

// demand is what endpoints ask of the checkers of a class. Checks are counted in
// parts, as in quotas, so that what is rounded here and there does not add up.
type demand struct {
	class   ClassID
	hash    uint64 // of its first kind
	own     int32  // the endpoints' zone, none if of all
	seats   int64
	cost    int64     // checks in 1,000 seconds
	lo, hi  []int64   // checks that must, and that can, go to each zone
	each    []int64   // no checker of a zone can have more
	cohorts [][]int32 // that can have them, by zone
	took    []int64   // what each cohort has of them
	level   int64     // up to which they fill their cohorts
}

// level sets what a checker's fair share is. The demand for each class fills up
// its checkers evenly, as far as placement allows, over what the demand for
// others has put there: scarce ones first, and again until all are even.
func (p *Planner) level() {
	if p.outdated || len(p.cohorts) > 2*p.seated+16 { // mostly of those that were otherwise, or left
		p.musterAll()
		p.outdated = false
	}
	demands := p.demands()
	f := p.filling(demands)
	const rounds = 24 // more are of no use
	for range rounds {
		for i := range demands {
			f.pour(&demands[i])
		}
		if f.settled() {
			break
		}
		f.lighten()
	}
	slack := quota(p.options.Slack)
	for g := range p.cohorts {
		q, mass := quota(0), p.cohorts[g].mass()
		if mass > 0 {
			q = quota((f.has[g]*fullWeight + mass - 1) / mass)
		}
		p.share[g] = q
		p.limit[g] = q * (100 + slack) / 100
		p.bound[g] = q * (1000 + 11*slack) / 1000
		p.breach[g] = q * (2000 + 23*slack) / 2000
	}
}

// demands are those of all kinds, scarcest first. Kinds that only differ in what
// they cost are as one, and so are all zones' endpoints where these matter little.
func (p *Planner) demands() []demand {
	place := p.places()
	var list []demand
	index := map[demandKey]int{}
	for _, i := range p.kindOrder {
		k := &p.kinds[i]
		for z, n := range k.counts {
			if n == 0 {
				continue
			}
			key := demandKey{kindKey: k.kindKey, own: none}
			if key.rate = 0; !k.plain() {
				key.own = int32(z) - 1
			}
			at, ok := index[key]
			if !ok {
				at = len(list)
				index[key] = at
				list = append(list, p.demand(k, key.own))
			}
			p.ask(&list[at], k, int32(z)-1, int64(n))
		}
	}
	list = slices.DeleteFunc(list, func(d demand) bool { return d.seats == 0 })
	slices.SortStableFunc(list, func(a, b demand) int {
		return cmp.Or(int(place[a.class]-place[b.class]), cmp.Compare(a.hash, b.hash), p.zones.Compare(a.own, b.own))
	})
	return list
}

// demandKey is what endpoints of one demand have in common.
type demandKey struct {
	kindKey
	own int32
}

func (p *Planner) demand(k *kind, own int32) demand {
	zones := p.zones.Len()
	return demand{
		class: k.class, hash: k.hash, own: own, cohorts: p.cohortsOf(k.class),
		lo: make([]int64, zones), hi: make([]int64, zones), each: make([]int64, zones), took: make([]int64, len(p.cohorts)),
	}
}

// ask counts a kind's endpoints of one zone in.
func (p *Planner) ask(d *demand, k *kind, zone int32, count int64) {
	a := request{class: &p.classes[k.class], own: zone, count: count << quotaBits}
	seats := int64(a.place(p, d, k, int(k.redundancy)))
	d.seats += a.count * seats
	d.cost += count * seats * k.rate
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
	inside := func(z int32) bool { return p.zones.Region(z) == p.zones.Region(a.own) }
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
		d.each[own] += a.count
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
			d.each[z] += a.count
		default:
			if zones <= seats || int32(z) == own && seats > 0 {
				d.lo[z] += a.count
			}
			d.hi[z] += a.count * int64(min(int(n), max(1, seats-zones+1), seats))
			d.each[z] += a.count
		}
	}
	return seats
}
