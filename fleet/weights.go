package fleet

import (
	"maps"
	"slices"

	"hdsd/health"
)

// weigh computes the capacity of each checker, and lists the connected ones whose capacity
// changed.
//
// A node's own weight counts up to health.MostWeight. All checkers of one identity in one zone
// together weigh as much as one of them alone, if the zone has other identities. So several
// node ids bring no more weight.
func (f *Fleet) weigh() (changed []health.Checker) {
	claims := make([]float64, 0, len(f.checkers))
	sharing := newSharing()
	for _, known := range f.checkers {
		if !known.onProbation() {
			claims = append(claims, known.nodeWeight)
			sharing.add(&known.Checker)
		}
	}
	limit := health.MostWeight(claims)
	for _, id := range slices.Sorted(maps.Keys(f.checkers)) {
		known := f.checkers[id]
		previous := known.Checker
		f.capacity(&known.Checker, min(known.nodeWeight, limit))
		known.Weight = sharing.part(&known.Checker)
		unchanged := previous.Weight == known.Weight && previous.MaxChecksPerSecond == known.MaxChecksPerSecond
		if !unchanged && known.connected && !known.onProbation() && known.cover == uncovered && !f.silent[id].replaced() {
			changed = append(changed, known.Checker)
		}
	}
	return changed
}

// SetCapacity sets another rule for the capacity of checkers, from the next Apply on.
func (f *Fleet) SetCapacity(c Capacity) {
	f.capacity = c
	for _, k := range f.weigh() {
		f.upsertChecker(k)
	}
}

// sharing counts the checkers of a zone by identity. A checker without an identity counts for
// itself.
type sharing struct {
	checkers map[holder]int          // by holder
	zones    map[health.Locality]int // number of identities
}

// holder is an identity in a zone.
type holder struct {
	identity string
	zone     health.Locality
}

func newSharing() *sharing {
	return &sharing{checkers: map[holder]int{}, zones: map[health.Locality]int{}}
}

// zoneOf returns a checker's region and zone.
func zoneOf(k *health.Checker) health.Locality {
	return health.Locality{Region: k.Locality.Region, Zone: k.Locality.Zone}
}

func (s *sharing) add(k *health.Checker) {
	h := holder{k.Identity, zoneOf(k)}
	if k.Identity == "" || s.checkers[h] == 0 {
		s.zones[h.zone]++
	}
	s.checkers[h]++
}

// part returns a checker's weight, divided among those that share its identity if the zone has
// other identities.
func (s *sharing) part(k *health.Checker) float64 {
	h := holder{k.Identity, zoneOf(k)}
	if k.Identity == "" || s.zones[h.zone] == 1 {
		return k.Weight
	}
	whole := k.Weight
	if whole == 0 {
		whole = 1
	}
	if n := s.checkers[h]; n > 1 {
		return whole / float64(n)
	}
	return k.Weight
}
