package xds

import (
	"slices"
	"time"
)

// Want names the assignments that clusters of other sources take their
// endpoints from. They are asked for as well, and handed on as clusters with
// nothing but endpoints. Each call takes the place of the one before.
func (s *Source) Want(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
		s.assignments.subscribe(name, others, time.Now())
	}
	for _, name := range s.wanted {
		if !wanted[name] {
			s.assignments.unsubscribe(name, others)
		}
	}
	s.wanted = slices.Clone(names)
	poke(s.wake[s.assignments.typeURL])
	poke(s.changed)
}

// wantedParts are those of an assignment that others want, and that no cluster
// of this source has.
func (s *Source) wantedParts(name string) (p parts) {
	a := s.assignments.entries[name]
	if a != nil && a.askers[others] && a.good != nil && s.latest.services[name] == 0 {
		p.assignment = a.good.assignment() // else another source may have it
	}
	return p
}
