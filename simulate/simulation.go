package simulate

import (
	"fmt"

	"hdsd/assign"
	"hdsd/health"
)

// Simulation is a fleet with a plan. Make one with New, then call Plan, then Result.
type Simulation struct {
	in      Input
	planner *assign.Planner
	change  assign.Change
	groups  []group // in the order of their endpoints' ids
	cluster []int32 // of each endpoint
}

// group is the endpoints of a place, whose ids follow each other.
type group struct {
	cluster *Cluster
	first   health.EndpointID
	size    int
}

// New prepares all but the plan, so that the caller can measure the time of Plan.
func New(in Input) *Simulation {
	s := &Simulation{in: in, planner: assign.New(assign.Options{})}
	total := 0
	for _, k := range in.Clusters {
		for _, place := range k.Places {
			total += len(place.Hashes)
		}
	}
	s.cluster = make([]int32, 0, total)
	s.change = assign.Change{Join: in.Checkers, Upsert: make([]assign.Endpoint, 0, total)}
	for i := range in.Clusters {
		s.add(int32(i), &in.Clusters[i])
	}
	return s
}

// add adds a cluster to what is to be planned.
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

// Result answers all questions. It tries the loss of at most so many checkers, evenly
// chosen, and of at most so many zones. Call it once.
func (s *Simulation) Result(most int) *Result {
	r := &Result{Checkers: len(s.in.Checkers), Clusters: len(s.in.Clusters), Endpoints: len(s.cluster)}
	for _, k := range s.in.Clusters {
		for _, aside := range k.Aside {
			r.Endpoints += aside.Endpoints
		}
	}
	for _, d := range s.in.DataPlanes {
		r.DataPlanes += d.Count
	}
	r.Plan = s.plan()
	r.NotChecked, r.TooFew = s.shortfalls()
	r.Probing = s.probing()
	r.Zones, r.LostZones = s.loseZones(most)
	r.LostCheckers = s.loseCheckers(most)
	return r
}

// plan says what each checker has to do.
func (s *Simulation) plan() Plan {
	p := Plan{Digest: fmt.Sprintf("%016x", s.planner.Digest()), Checks: s.planner.Stats().Checks}
	var endpoints, rates, bursts, clusters []weighed
	latest := make([]int, len(s.in.Clusters)) // the last checker that has each cluster, from 1
	for i, k := range s.in.Checkers {
		has := s.planner.Checker(k.ID)
		endpoints = append(endpoints, weighed{float64(has.Endpoints), 1})
		rates = append(rates, weighed{perSecond(has.Rate), 1})
		if has.Share > 0 {
			p.MaxOfShare = max(p.MaxOfShare, float64(has.Endpoints)/float64(has.Share))
		}
		different, burst := 0, int64(0)
		for id := range s.planner.Endpoints(k.ID) {
			cluster := s.cluster[id]
			burst += s.in.Clusters[cluster].Burst
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
