package assign_test

import (
	"maps"
	"slices"

	"hdsd/assign"
	"hdsd/health"
)

// parts is how many of them make a check in a flow, so that shares are exact
// enough in whole numbers.
const parts = 1000

// fair is the flow network of who may check what: the oracle of a plan.
type fair struct {
	flow
	fleet   []health.Checker
	outlet  []int   // each checker's arc to the sink
	ceiling []int64 // that it has at most
	checks  int64
}

// crowd is endpoints that ask for the same.
type crowdKey struct {
	class      assign.ClassID
	zone       health.Locality
	redundancy int
	zones      assign.Placement
}

// fairOf makes it for endpoints that all cost one check a second.
func fairOf(classes []assign.Class, all []assign.Endpoint, fleet []health.Checker) *fair {
	f := &fair{fleet: fleet}
	f.node() // the source
	f.node() // the sink
	var checkers []int32
	for i := range fleet {
		n := f.node()
		checkers = append(checkers, n)
		f.outlet = append(f.outlet, f.arc(n, 1, 0))
		f.ceiling = append(f.ceiling, 1<<50)
		if most := fleet[i].MaxChecksPerSecond; most > 0 {
			f.ceiling[i] = int64(most) * parts
		}
	}
	count := map[crowdKey]int64{}
	for _, e := range all {
		count[crowdKey{e.Class, e.Locality, e.Redundancy, e.Zones}]++
	}
	for k, n := range count {
		able := map[health.Locality][]int32{}
		for i := range fleet {
			c := &fleet[i]
			if !classes[k.class].Withheld && c.Abilities.Has(classes[k.class].Needs...) && classes[k.class].Reach.Includes(c) && (k.zones != assign.OwnOnly || c.Locality == k.zone) {
				able[c.Locality] = append(able[c.Locality], checkers[i])
			}
		}
		f.crowd(k, n*parts, able)
	}
	return f
}

// crowd puts endpoints in whose checkers may be some of those in each zone.
func (f *fair) crowd(k crowdKey, n int64, able map[health.Locality][]int32) {
	seats := 0
	for _, list := range able {
		seats += len(list)
	}
	seats = min(seats, k.redundancy)
	f.checks += int64(seats) * n
	left, anywhere := seats, f.node()
	for z, list := range able {
		must, may := k.bounds(z, seats, able)
		place := f.node()
		f.arc(0, place, int64(must)*n)
		f.arc(anywhere, place, int64(may-must)*n)
		left -= must
		for _, c := range list {
			f.arc(place, c, n)
		}
	}
	f.arc(0, anywhere, int64(left)*n)
}

// bounds are how many of an endpoint's checkers must be in a zone, and may be.
func (k crowdKey) bounds(z health.Locality, seats int, able map[health.Locality][]int32) (must, may int) {
	zones, home := len(able), len(able[k.zone])
	switch {
	case k.zones == assign.Anywhere || k.zones == assign.OwnOnly:
		return 0, seats
	case k.zones == assign.OwnFirst && home > 0:
		first := min(seats, home)
		if z == k.zone {
			return first, first
		}
		seats, zones = seats-first, zones-1
	case z == k.zone && zones > seats:
		return 1, 1
	}
	switch {
	case seats == 0:
		return 0, 0
	case zones <= seats:
		return 1, seats - zones + 1
	}
	return 0, 1
}

func weightOf(c *health.Checker) float64 {
	if c.Weight == 0 {
		return 1
	}
	return c.Weight
}

// fits tells whether all checks find a place where some checkers' shares are
// known, and others have a level's part by weight. The flow is kept until the
// next call.
func (f *fair) fits(known map[int]int64, level float64) bool {
	clear(f.used)
	for i, a := range f.outlet {
		share, ok := known[i]
		if !ok {
			share = min(int64(level*weightOf(&f.fleet[i])), f.ceiling[i])
		}
		f.room[a] = share
	}
	return f.fill() == f.checks
}

// shares are what the checkers have where loads are as even as the rules allow:
// no one could have less for its weight but at the cost of one that has as much.
// It is nil where ceilings leave too little room.
func (f *fair) shares() []float64 {
	known := map[int]int64{}
	for len(known) < len(f.fleet) {
		low, high := 0.0, float64(f.checks)*10
		if !f.fits(known, high) {
			return nil
		}
		for high-low > 1 {
			if middle := (low + high) / 2; f.fits(known, middle) {
				high = middle
			} else {
				low = middle
			}
		}
		idle := f.fits(known, low)
		for i, a := range f.outlet { // those that spare flow can reach need all of it
			if _, ok := known[i]; !ok && (idle || f.level[f.to[a^1]] >= 0) {
				known[i] = min(int64(high*weightOf(&f.fleet[i])), f.ceiling[i])
			}
		}
	}
	var list []float64
	for _, i := range slices.Sorted(maps.Keys(known)) {
		list = append(list, float64(known[i])/parts)
	}
	return list
}
