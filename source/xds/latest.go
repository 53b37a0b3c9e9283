package xds

import (
	"maps"
	"slices"
	"time"

	"hdsd/source"
)

// latest is the basis of the last set. The next one is made of it and of the entries touched
// since. Guarded by Source.mu.
type latest struct {
	built    map[string]built            // by name
	services map[string]int              // number of EDS clusters for each service name
	troubles map[string][]source.Problem // by name
	clusters []*source.Cluster
	problems []source.Problem
}

// built is the content of a set under one name. It is never empty.
type built struct {
	parts
	result *source.Cluster
}

func newLatest() latest {
	return latest{built: make(map[string]built), services: make(map[string]int), troubles: make(map[string][]source.Problem)}
}

// refresh updates touched entries.
func (s *Source) refresh(now time.Time) {
	amended, troubled := make(map[string]*source.Cluster), false
	look := func(name string) {
		found := &source.Set{}
		amended[name] = s.look(name, found, now)
		troubled = s.latest.setProblems(name, found.Problems) || troubled
	}
	for name := range s.stale() {
		look(name)
	}
	for name := range s.assignments.touched { // the clusters that use them are known by now
		look(name)
	}
	s.clusters.touched, s.assignments.touched = make(map[string]bool), make(map[string]bool)
	if len(amended) > 0 {
		s.latest.clusters = source.Amend(s.latest.clusters, amended)
	}
	if troubled {
		s.latest.problems = nil
		for _, name := range slices.Sorted(maps.Keys(s.latest.troubles)) {
			s.latest.problems = append(s.latest.problems, s.latest.troubles[name]...)
		}
	}
}

// stale names the clusters that may have changed.
func (s *Source) stale() map[string]bool {
	names := maps.Clone(s.clusters.touched)
	for name := range s.assignments.touched {
		if a := s.assignments.entries[name]; a != nil {
			maps.Copy(names, a.askers)
		}
	}
	delete(names, others)
	return names
}

// look returns the current cluster of a name; nil if there is none.
func (s *Source) look(name string, set *source.Set, now time.Time) *source.Cluster {
	before := s.latest.built[name]
	var p parts
	e, ok := s.clusters.entries[name]
	if ok {
		if p, ok = s.parts(e, set, now); !ok && before.cluster() {
			return before.result // until its endpoints are there
		}
	}
	if !ok {
		p = s.wantedParts(name)
	}
	if before.parts == p {
		return before.result
	}
	after := built{parts: p}
	if p == (parts{}) {
		delete(s.latest.built, name)
	} else {
		after.result = s.cluster(name, p)
		s.latest.built[name] = after
	}
	s.countUse(before.result, -1)
	s.countUse(after.result, 1)
	return after.result
}

// countUse tracks how many clusters use an assignment. One that none uses is handed on by
// itself.
func (s *Source) countUse(c *source.Cluster, delta int) {
	if c == nil || !c.EDS() {
		return
	}
	s.latest.services[c.ServiceName] += delta
	if s.latest.services[c.ServiceName] == 0 {
		delete(s.latest.services, c.ServiceName)
	}
	s.assignments.touched[c.ServiceName] = true
}

// setProblems records the problems of a name, and reports whether they are new.
func (l *latest) setProblems(name string, problems []source.Problem) bool {
	if slices.Equal(problems, l.troubles[name]) {
		return false
	}
	if l.troubles[name] = problems; problems == nil {
		delete(l.troubles, name)
	}
	return true
}
