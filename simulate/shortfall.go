package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hdsd/assign"
	"hdsd/health"
)

// gathering collects shortfalls by reason.
type gathering map[string]*gathered

type gathered struct {
	Shortfall
	latest string // cluster
}

func (g gathering) add(reason, cluster string, endpoints int) {
	found := g[reason]
	if found == nil {
		found = &gathered{Shortfall: Shortfall{Reason: reason, Example: cluster}}
		g[reason] = found
	}
	if found.latest != cluster || found.Clusters == 0 {
		found.Clusters++
		found.latest = cluster
	}
	found.Endpoints += endpoints
}

// list sorts shortfalls, most endpoints first.
func (g gathering) list() []Shortfall {
	shortfalls := make([]Shortfall, 0, len(g))
	for _, found := range g {
		shortfalls = append(shortfalls, found.Shortfall)
	}
	slices.SortFunc(shortfalls, func(a, b Shortfall) int {
		return cmp.Or(cmp.Compare(b.Endpoints, a.Endpoints), cmp.Compare(a.Reason, b.Reason))
	})
	return shortfalls
}

// shortfalls lists the endpoints without checkers, and those with too few.
func (s *Simulation) shortfalls() (none, few []Shortfall) {
	nobody, tooFew := gathering{}, gathering{}
	for _, k := range s.input.Clusters {
		for _, aside := range k.Aside {
			nobody.add(aside.Reason, k.Name, aside.Endpoints)
		}
	}
	for _, g := range s.groups {
		for i := range g.size {
			missing, reason := s.planner.Shortage(g.first + health.EndpointID(i))
			switch {
			case reason == assign.Enough:
			case missing >= max(g.cluster.Redundancy, 1):
				nobody.add(s.reason(g.cluster, reason, "none of the"), g.cluster.Name, 1)
			default:
				tooFew.add(s.reason(g.cluster, reason, fmt.Sprintf("lacks %d of %d checkers: no other of the", missing, g.cluster.Redundancy)), g.cluster.Name, 1)
			}
		}
	}
	return nobody.list(), tooFew.list()
}

// reason explains why an endpoint of a cluster has no more checkers.
func (s *Simulation) reason(k *Cluster, reason assign.Reason, none string) string {
	needs := make([]string, len(k.Needs))
	for i, need := range k.Needs {
		needs[i] = string(need)
	}
	text := fmt.Sprintf("%s %d checkers takes %s", none, len(s.input.Checkers), strings.Join(needs, ", "))
	if k.Reach != nil {
		text += ", and is allowed by its policy (policies[].checkers)"
	}
	switch reason {
	case assign.TooFar:
		text += ", and is in its zone or region, where its checkers have to be"
	case assign.NoRoom:
		text += ", and has room below its max_checks_per_second"
	}
	return text
}
