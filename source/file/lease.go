package file

import (
	"fmt"
	"slices"
	"time"

	"hdsd/source"
)

// renew begins the leases of assignments (policy.endpoint_stale_after) anew: the files were
// read. Of a cluster that is rejected, what was valid goes on as it was. The caller holds mu.
func (s *Source) renew(now time.Time) {
	before := s.ends
	s.ends = nil
	for _, c := range s.last.Clusters {
		lease := source.Lease(c.Assignment.Wire())
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

// lapse takes the endpoints out of assignments whose lease is over. It returns which are new
// among these, and when the next lease ends; zero: none does.
func (s *Source) lapse(now time.Time) (ended []string, next time.Time) {
	if len(s.ends) == 0 {
		return nil, next
	}
	var all []*source.Cluster // those of now, changed
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
			if all == nil {
				all = slices.Clone(s.now.Clusters)
			}
			stale := *c
			stale.Assignment, stale.Stale = source.Ended(c.ServiceName), true
			all[i], ended = &stale, append(ended, c.ServiceName)
			problems = append(problems, source.Problem{
				File: c.File, Line: c.Line, Resource: c.Name, Warning: true,
				Message: fmt.Sprintf("it has no endpoints: the lease of the ClusterLoadAssignment %q (policy.endpoint_stale_after) is over, "+
					"and no file has been moved into place since", c.ServiceName),
			})
		}
	}
	if all != nil {
		problems = append(problems, s.now.Problems...)
		sortProblems(problems)
		s.now = &source.Set{Source: s.now.Source, Clusters: all, Problems: problems}
	}
	slices.Sort(ended)
	return slices.Compact(ended), next
}
