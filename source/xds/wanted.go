package xds

import (
	"slices"
	"time"
)

// Want names the assignments used by clusters of other sources. The source subscribes to them,
// and hands them on as clusters with nothing but endpoints. Each call replaces the one before.
func (s *Source) Want(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[string]bool, len(names))
	now := time.Now()
	for _, name := range names {
		wanted[name] = true
		entry := s.assignments.entries[name]
		s.pending = s.pending || entry == nil || !entry.askers[others]
		s.assignments.subscribe(name, others, now)
		s.restoreUnused(name)
	}
	for _, name := range s.wanted {
		if !wanted[name] {
			s.assignments.unsubscribe(name, others)
		}
	}
	s.wanted = slices.Clone(names)
	s.wake(s.assignments)
	notify(s.changed)
}

// restoreUnused restores an assignment of the snapshot that was not in use before.
func (s *Source) restoreUnused(name string) {
	if unused, ok := s.unasked[name]; ok {
		delete(s.unasked, name)
		s.assignments.apply(&update{items: []item{unused}}, s.assignments.talk.updated)
		s.assignments.dropRefused(s.assignments.entries[name])
	}
}

// Pending reports whether the server has yet to answer about the names of Want. Once it
// has, or the time is over, Run delivers a set, even an unchanged one.
func (s *Source) Pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

// settle ends Pending, and reports whether it was set. If the server is given up,
// nothing stays pending.
func (s *Source) settle(givenUp bool) bool {
	if !s.pending || !givenUp && s.assignments.counts.lent > 0 {
		return false
	}
	s.pending = false
	return true
}

// wantedParts returns the parts of a wanted assignment, if no cluster of this source has it. If
// it does not exist, another source may have it.
func (s *Source) wantedParts(name string) parts {
	a := s.assignments.entries[name]
	switch {
	case a == nil || !a.askers[others] || s.latest.services[name] > 0:
		return parts{}
	case a.good != nil:
		return parts{lone: true, assignment: a.good.decoded.lists, stale: a.stale}
	case a.refused != nil:
		return parts{lone: true, rejected: a.refused.reason}
	default:
		return parts{}
	}
}
