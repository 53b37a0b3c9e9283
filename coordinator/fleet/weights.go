package fleet

import (
	"maps"
	"slices"

	"hdsd/health"
)

// weigh works out the capacity of each checker, and lists the connected ones for which
// the plan has to be changed.
//
// A node's own weight counts up to health.MostWeight. All checkers of one identity in
// one zone weigh as much together as one of them would alone, where the zone has others.
// So nobody gets more by coming under several node ids.
func (f *Fleet) weigh() (changed []health.Checker) {
	claims := make([]float64, 0, len(f.checkers))
	sharing := newSharing()
	for _, known := range f.checkers {
		if !known.onProbation() {
			claims = append(claims, known.nodeWeight)
			sharing.add(&known.Checker)
		}
	}
	most := health.MostWeight(claims)
	for _, id := range slices.Sorted(maps.Keys(f.checkers)) {
		known := f.checkers[id]
		before := known.Checker
		f.capacity(&known.Checker, min(known.nodeWeight, most))
		known.Weight = sharing.part(&known.Checker)
		same := before.Weight == known.Weight && before.MaxChecksPerSecond == known.MaxChecksPerSecond
		if !same && known.connected && !known.onProbation() && known.cover == uncovered && !f.silent[id].replaced() {
			changed = append(changed, known.Checker)
		}
	}
	return changed
}

// SetCapacity takes another rule for the capacity of checkers. The next Apply applies it.
func (f *Fleet) SetCapacity(c Capacity) {
	f.capacity = c
	for _, k := range f.weigh() {
		f.upsertChecker(k)
	}
}

// sharing counts how many checkers of a zone share an identity. A checker without an
// identity stands for itself.
type sharing struct {
	of    map[holder]int          // checkers of an identity in a zone
	zones map[health.Locality]int // identities in a zone
}

// holder is an identity in a zone.
type holder struct {
	identity string
	zone     health.Locality
}

func newSharing() *sharing {
	return &sharing{of: map[holder]int{}, zones: map[health.Locality]int{}}
}

// zoneOf returns a checker's region and zone.
func zoneOf(k *health.Checker) health.Locality {
	return health.Locality{Region: k.Locality.Region, Zone: k.Locality.Zone}
}

func (s *sharing) add(k *health.Checker) {
	at := holder{k.Identity, zoneOf(k)}
	if k.Identity == "" || s.of[at] == 0 {
		s.zones[at.zone]++
	}
	s.of[at]++
}

// part returns a checker's weight, divided among those that share its identity if the
// zone has other identities.
func (s *sharing) part(k *health.Checker) float64 {
	at := holder{k.Identity, zoneOf(k)}
	if k.Identity == "" || s.zones[at.zone] == 1 {
		return k.Weight
	}
	whole := k.Weight
	if whole == 0 {
		whole = 1
	}
	if n := s.of[at]; n > 1 {
		return whole / float64(n)
	}
	return k.Weight
}
