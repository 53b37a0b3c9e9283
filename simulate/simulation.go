package simulate

import (
	"fmt"

	"hdsd/assign"
	"hdsd/health"
)

// Simulation is a fleet with a plan. Make one with New, then call Plan, then Result.
type Simulation struct {
	input   Input
	planner *assign.Planner
	change  assign.Change
	groups  []group // in the order of their endpoints' ids
	cluster []int32 // of each endpoint
}

// group is the endpoints of a place. Their ids are consecutive.
type group struct {
	cluster *Cluster
	first   health.EndpointID
	size    int
}

// New prepares all but the plan, so that the caller can measure the time of Plan.
func New(input Input) *Simulation {
	s := &Simulation{input: input, planner: assign.New(assign.Options{})}
	total := 0
	for _, k := range input.Clusters {
		for _, place := range k.Places {
			total += len(place.Hashes)
		}
	}
	s.cluster = make([]int32, 0, total)
	s.change = assign.Change{Join: input.Checkers, Upsert: make([]assign.Endpoint, 0, total)}
	for i := range input.Clusters {
		s.add(int32(i), &input.Clusters[i])
	}
	return s
}

// add adds a cluster to the plan's input.
func (s *Simulation) add(index int32, k *Cluster) {
	class := s.planner.Class(assign.Class{Needs: k.Needs, Reach: k.Reach})
	name := health.ClusterHash(k.Name)
	for _, place := range k.Places {
		s.groups = append(s.groups, group{k, health.EndpointID(len(s.cluster)), len(place.Hashes)})
		for _, hash := range place.Hashes {
			s.change.Upsert = append(s.change.Upsert, assign.Endpoint{
				ID: health.EndpointID(len(s.cluster)), Hash: hash, ClusterHash: name, Locality: place.Locality, Class: class,
				Redundancy: k.Redundancy, Rate: k.Rate, Zones: k.Zones, Regions: k.Regions,
			})
			s.cluster = append(s.cluster, index)
		}
	}
}

// Plan makes the plan from scratch.
func (s *Simulation) Plan() {
	s.planner.Apply(s.change)
	s.change = assign.Change{} // it is large
}

// Result computes all answers. It tries the loss of up to limit checkers, evenly chosen, and of
// up to limit zones. Call it once.
func (s *Simulation) Result(limit int) *Result {
	r := &Result{Checkers: len(s.input.Checkers), Clusters: len(s.input.Clusters), Endpoints: len(s.cluster)}
	for _, k := range s.input.Clusters {
		for _, aside := range k.Aside {
			r.Endpoints += aside.Endpoints
		}
	}
	for _, d := range s.input.DataPlanes {
		r.DataPlanes += d.Count
	}
	r.Plan = s.plan()
	r.NotChecked, r.TooFew = s.shortfalls()
	r.Probing = s.probing()
	r.Zones, r.LostZones = s.loseZones(limit)
	r.LostCheckers = s.loseCheckers(limit)
	return r
}

// plan returns the load of checkers.
func (s *Simulation) plan() Plan {
	p := Plan{Digest: fmt.Sprintf("%016x", s.planner.Digest()), Checks: s.planner.Stats().Checks}
	var endpoints, rates, bursts, clusters []weighed
	latest := make([]int, len(s.input.Clusters)) // last checker of each cluster, from 1
	for i, k := range s.input.Checkers {
		checker := s.planner.Checker(k.ID)
		endpoints = append(endpoints, weighed{float64(checker.Endpoints), 1})
		rates = append(rates, weighed{perSecond(checker.Rate), 1})
		if checker.Share > 0 {
			p.MaxOfShare = max(p.MaxOfShare, float64(checker.Endpoints)/float64(checker.Share))
		}
		different, burst := 0, int64(0)
		for id := range s.planner.Endpoints(k.ID) {
			cluster := s.cluster[id]
			burst += s.input.Clusters[cluster].Burst
			if latest[cluster] != i+1 {
				latest[cluster] = i + 1
				different++
			}
		}
		bursts = append(bursts, weighed{perSecond(burst), 1})
		clusters = append(clusters, weighed{float64(different), 1})
	}
	p.Endpoints, p.ChecksPerSecond, p.Burst, p.Clusters = spreadOf(endpoints), spreadOf(rates), spreadOf(bursts), spreadOf(clusters)
	return p
}

// perSecond converts checks in 1,000 seconds to checks a second.
func perSecond(rate int64) float64 { return float64(rate) / 1000 }
