package assign

import (
	"cmp"
	"slices"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/zone"
)

// shares computes each checker's fair share from the demand of all endpoints.
type shares struct {
	zones   *zone.Table
	fleet   *fleet
	classes *classes
	kinds   *kinds
	quotas  *quota.Table
	slack   int
	stale   bool // the cohorts do not yet distinguish all classes
}

// join adds a known checker to the cohort of checkers like it.
func (h *shares) join(s int32) {
	h.quotas.Join(s, quota.Kind{Zone: h.fleet.zone(s), Capacity: h.fleet.capacity(s), Classes: h.classes.bits(s)})
}

// addClass records a new class that cohorts do not distinguish yet.
func (h *shares) addClass() { h.stale = true }

// leave removes a checker from its cohort.
func (h *shares) leave(s int32) { h.quotas.Leave(s) }

// level computes all shares again.
func (h *shares) level() {
	if h.stale || h.quotas.Stale(h.fleet.size()) {
		h.quotas.Clear()
		for s := range int32(h.fleet.len()) {
			if h.fleet.isKnown(s) {
				h.join(s)
			}
		}
		h.stale = false
	}
	h.quotas.Level(h.demands(), h.slack)
}

// demand is the demand of some kinds, in one zone or in all.
type demand struct {
	quota.Demand
	hash uint64 // hash of its first kind
	own  int32
}

// demands returns the demands of all kinds, scarcest classes first. It merges kinds
// that differ only in cost. It also merges all zones of a kind where zones matter
// little.
func (h *shares) demands() []quota.Demand {
	place := h.classes.byScarcity()
	var list []demand
	index := map[demandKey]int{}
	for _, k := range h.kinds.inOrder() {
		for z, n := range k.counts {
			if n == 0 {
				continue
			}
			key := demandKey{kindKey: k.kindKey, own: none}
			if key.rate = 0; !k.plain() {
				key.own = int32(z) - 1
			}
			i, ok := index[key]
			if !ok {
				i = len(list)
				index[key] = i
				list = append(list, demand{quota.NewDemand(uint32(k.id), h.zones.Len()), k.hash, key.own})
			}
			r := request{&list[i].Demand, k.class, h.zones, int32(z) - 1, int(n)}
			list[i].Add(int(n), r.place(k, k.wants()), k.rate)
		}
	}
	slices.SortStableFunc(list, func(a, b demand) int {
		return cmp.Or(int(place[a.Class]-place[b.Class]), cmp.Compare(a.hash, b.hash), h.zones.Compare(a.own, b.own))
	})
	demands := make([]quota.Demand, 0, len(list))
	for _, d := range list {
		if d.Seats > 0 {
			demands = append(demands, d.Demand)
		}
	}
	return demands
}

// demandKey holds what the endpoints of one demand have in common.
type demandKey struct {
	kindKey
	own int32
}

// request adds the endpoints of one kind and zone to a demand, and says in which
// zones their seats may be.
type request struct {
	*quota.Demand
	*class
	zones *zone.Table
	own   int32
	count int
}

// place applies the placement by region, and returns how many seats there are for
// each endpoint.
func (r *request) place(k *kind, seats int) int {
	everywhere := func(int32) bool { return true }
	if r.own == none {
		return r.among(k.zones, seats, everywhere)
	}
	inside := func(z int32) bool { return r.zones.Region(z) == r.zones.Region(r.own) }
	switch k.regions {
	case OwnOnly:
		return r.among(k.zones, seats, inside)
	case OwnFirst:
		first := r.among(k.zones, seats, inside)
		return first + r.among(k.zones, seats-first, func(z int32) bool { return !inside(z) })
	case Spread: // one in each, if there are enough
		first := r.among(k.zones, min(seats, 1), inside)
		return first + r.among(k.zones, seats-first, everywhere)
	}
	return r.among(k.zones, seats, everywhere)
}

// among applies the placement by zone within some regions.
func (r *request) among(zones Placement, seats int, inRegions func(z int32) bool) int {
	ownZone := r.own
	if ownZone != none && !inRegions(ownZone) {
		if zones == OwnOnly {
			return 0
		}
		ownZone = none
	}
	first := 0
	if ownZone != none && (zones == OwnOnly || zones == OwnFirst) {
		first = min(seats, int(r.seats[ownZone]))
		r.Allow(ownZone, r.count, first, first)
		if zones == OwnOnly || first == seats {
			return first
		}
		inside, taken := inRegions, ownZone
		inRegions = func(z int32) bool { return z != taken && inside(z) }
		ownZone = none
	}
	return first + r.spread(zones, seats-first, ownZone, inRegions)
}

// spread puts one seat in each zone if there are enough zones, or any number where
// zones do not matter.
func (r *request) spread(placement Placement, seats int, ownZone int32, included func(z int32) bool) int {
	zones, checkers := 0, 0
	for z, n := range r.seats {
		if n > 0 && included(int32(z)) {
			zones++
			checkers += int(n)
		}
	}
	seats = min(seats, checkers)
	for z, n := range r.seats {
		switch {
		case n == 0 || !included(int32(z)):
		case placement == Anywhere:
			r.Allow(int32(z), r.count, 0, min(int(n), seats))
		default:
			minimum := 0
			if zones <= seats || int32(z) == ownZone && seats > 0 {
				minimum = 1
			}
			r.Allow(int32(z), r.count, minimum, min(int(n), max(1, seats-zones+1), seats))
		}
	}
	return seats
}
