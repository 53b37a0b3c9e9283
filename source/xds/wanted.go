package xds

import (
	"cmp"
	"slices"
	"time"

	"hdsd/source"
)

// Want names the assignments that clusters of other sources take their
// endpoints from. They are asked for as well, and handed on as clusters with
// nothing but endpoints. Each call takes the place of the one before.
func (s *Source) Want(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.assignments.subscribe(name, time.Now())
	}
	for _, name := range s.wanted {
		s.assignments.unsubscribe(name)
	}
	s.wanted = slices.Clone(names)
	poke(s.wake[s.assignments.typeURL])
	poke(s.changed)
}

// addWanted adds what others want to a set, but for assignments that clusters
// of this source have.
func (s *Source) addWanted(set *source.Set) {
	if len(s.wanted) == 0 {
		return
	}
	taken := make(map[string]bool, len(set.Clusters))
	for _, c := range set.Clusters {
		taken[c.Name] = true
		taken[c.ServiceName] = taken[c.ServiceName] || c.EDS()
	}
	for _, name := range s.wanted {
		e := s.assignments.entries[name]
		if e.good == nil || taken[name] {
			continue // another source may have it
		}
		if p := (parts{assignment: e.good.assignment()}); e.built.parts != p {
			e.built = built{p, &source.Cluster{Source: s.options.Name, Name: name, ServiceName: name, File: s.where, Assignment: p.assignment}}
		}
		set.Clusters = append(set.Clusters, e.built.result)
	}
	slices.SortFunc(set.Clusters, func(a, b *source.Cluster) int { return cmp.Compare(a.Name, b.Name) })
}
