package file

import (
	"fmt"
	"slices"
	"time"

	"hdsd/envoy"
	"hdsd/source"
)

// renew begins the leases of assignments (policy.endpoint_stale_after) again: the files were
// read. The valid version of a rejected cluster keeps its lease. The caller holds mu.
func (s *Source) renew(now time.Time) {
	before := s.ends
	s.ends = nil
	for _, c := range s.last.Clusters {
		lease := envoy.Lease(c.Assignment.Wire())
		if lease == 0 || !c.Lone && !c.EDS() {
			continue
		}
		end := now.Add(lease)
		if earlier := before[c.Name]; c.Rejected != "" && !earlier.IsZero() {
			end = earlier
		}
		if s.ends == nil {
			s.ends = map[string]time.Time{}
		}
		s.ends[c.Name] = end
	}
	s.now = s.last
	s.lapse(now)
}

// lapse removes the endpoints of assignments whose lease has ended. It returns the newly ended
// ones, and the end of the next lease; zero: none.
func (s *Source) lapse(now time.Time) (ended []string, next time.Time) {
	if len(s.ends) == 0 {
		return nil, next
	}
	var clusters []*source.Cluster // changed clusters of now
	var problems []source.Problem
	for i, c := range s.now.Clusters {
		end := s.ends[c.Name]
		switch {
		case end.IsZero() || c.Stale:
		case end.After(now):
			if next.IsZero() || end.Before(next) {
				next = end
			}
		default:
			if clusters == nil {
				clusters = slices.Clone(s.now.Clusters)
			}
			stale := *c
			stale.Assignment, stale.Stale = source.Ended(c.ServiceName), true
			clusters[i], ended = &stale, append(ended, c.ServiceName)
			problems = append(problems, source.Problem{
				File: c.File, Line: c.Line, Resource: c.Name, Warning: true,
				Message: fmt.Sprintf("it has no endpoints: the lease of the ClusterLoadAssignment %q (policy.endpoint_stale_after) is over, "+
					"and no file has been moved into place since", c.ServiceName),
			})
		}
	}
	if clusters != nil {
		problems = append(problems, s.now.Problems...)
		sortProblems(problems)
		s.now = &source.Set{Source: s.now.Source, Clusters: clusters, Problems: problems}
	}
	slices.Sort(ended)
	return slices.Compact(ended), next
}
