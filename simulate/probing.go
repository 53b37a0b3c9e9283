package simulate

import "hdsd/health"

// probing compares the checks by hdsd's checkers with those by data planes.
func (s *Simulation) probing() Probing {
	var p Probing
	byRate := map[int64]int{} // endpoints by the checks of all their checkers
	groups := make([]weighed, 0, len(s.groups))
	for _, g := range s.groups {
		for i := range g.size {
			missing, _ := s.planner.Shortage(g.first + health.EndpointID(i))
			byRate[int64(max(g.cluster.Redundancy, 1)-missing)*g.cluster.Rate]++
		}
		readers := 0
		for _, d := range s.input.DataPlanes {
			if d.Uses(g.cluster.Name) {
				readers += d.Count
			}
		}
		groups = append(groups, weighed{float64(readers) * perSecond(g.cluster.Rate), g.size})
	}
	var endpoints []weighed
	checks := int64(0)
	for rate, times := range byRate {
		endpoints = append(endpoints, weighed{perSecond(rate), times})
		checks += rate * int64(times)
	}
	p.Checks = perSecond(checks)
	for _, w := range groups {
		p.OwnChecks += w.value * float64(w.times)
	}
	p.PerEndpoint, p.OwnPerEndpoint, p.PerDataPlane = spreadOf(endpoints), spreadOf(groups), spreadOf(s.perDataPlane())
	if p.Checks > 0 {
		p.Times = p.OwnChecks / p.Checks
	}
	return p
}

// perDataPlane lists the checks per second of each data plane.
func (s *Simulation) perDataPlane() []weighed {
	var groups []weighed
	for _, d := range s.input.DataPlanes {
		rate := int64(0)
		for _, g := range s.groups {
			if d.Uses(g.cluster.Name) {
				rate += int64(g.size) * g.cluster.Rate
			}
		}
		groups = append(groups, weighed{perSecond(rate), d.Count})
	}
	return groups
}
