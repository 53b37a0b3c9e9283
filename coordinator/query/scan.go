package query

import (
	"slices"
	"sort"
	"strings"

	"hdsd/api"
	"hdsd/catalog"
	"hdsd/health"
	"hdsd/peer/access"
)

// These bound the cost of a step of a list before the core goes on with other events. Looking
// at an endpoint costs 1, explaining its verdict more.
const (
	stepCost    = 20_000
	explainCost = 10
)

// scan is the progress of a list of endpoints.
type scan struct {
	query    api.EndpointQuery
	visible  access.Clusters
	keysOnly bool
	cluster  string           // where to go on: with this cluster, or the next by name,
	after    *health.Endpoint // and behind this endpoint
	found    []api.EndpointHealth
	keys     []health.Endpoint // in place of found
	more     bool
	finished bool
	cost     int // of the present step
}

// step goes on with a list of endpoints.
func (s *scan) step(state State) {
	s.cost = 0
	names := state.Names()
	if s.query.Cluster != "" {
		if names = versions(state, s.query.Cluster); !s.visible.Has(s.query.Cluster) {
			names = nil
		}
	}
	i, _ := slices.BinarySearch(names, s.cluster)
	switch {
	case s.keysOnly && s.keys == nil:
		s.keys = make([]health.Endpoint, 0, s.most(state, names[i:]))
	case !s.keysOnly && s.found == nil:
		s.found = make([]api.EndpointHealth, 0, s.most(state, names[i:]))
	}
	for ; i < len(names); i++ {
		if s.cluster = names[i]; !s.visible.Has(s.cluster) {
			s.after = nil
			continue
		}
		if !s.addCluster(state, state.Cluster(s.cluster)) {
			return
		}
		s.after = nil
	}
	s.finished = true
}

// versions returns the clusters with a name, as hdsd's own or the outside one, sorted.
func versions(state State, name string) (list []string) {
	if state.Cluster(name) != nil {
		list = append(list, name)
	}
	names := state.Names()
	first, _ := slices.BinarySearch(names, name+"#")
	for _, version := range names[first:] {
		if !strings.HasPrefix(version, name+"#") {
			break
		}
		if state.Cluster(version).Source.Outside() == name {
			list = append(list, version)
		}
	}
	return list
}

// most returns the largest number of endpoints that the list may have of some clusters; 0 if it
// leaves out some.
func (s *scan) most(state State, names []string) (n int) {
	if s.query.Cluster != "" || s.query.Address != "" || s.query.Health != nil || !s.query.Filter.Any() || !s.visible.All() {
		return 0
	}
	for i := 0; i < len(names) && n < s.query.Limit; i++ {
		n += len(state.Cluster(names[i]).Endpoints)
	}
	return min(n, s.query.Limit)
}

// addCluster adds the endpoints of a cluster, and reports whether all were looked at.
func (s *scan) addCluster(state State, k *catalog.Cluster) bool {
	first := 0
	if s.after != nil {
		first = sort.Search(len(k.Endpoints), func(i int) bool { return k.Endpoints[i].Key().Compare(*s.after) > 0 })
	}
	for i := first; i < len(k.Endpoints); i++ {
		e := &k.Endpoints[i]
		if s.cost >= stepCost {
			s.after = &health.Endpoint{} // before all
			if i > 0 {
				last := k.Endpoints[i-1].Key()
				s.after = &last
			}
			return false
		}
		s.cost++
		if !s.wants(state, e) {
			continue
		}
		if len(s.found)+len(s.keys) == s.query.Limit {
			s.more, s.finished = true, true
			return false
		}
		if s.keysOnly {
			s.keys = append(s.keys, e.Key())
			continue
		}
		s.cost += explainCost
		s.found = append(s.found, state.Explain(k, e))
	}
	return true
}

// wants reports whether the query lets an endpoint pass. It looks at no more than it has to.
func (s *scan) wants(state State, e *catalog.Endpoint) bool {
	q := &s.query
	if q.Address != "" && e.Address() != q.Address {
		return false
	}
	if q.Health == nil && !q.Filter.Unhealthy {
		return q.Filter.Any() || q.Filter.In(*e.Locality())
	}
	status := state.Status(e)
	return (q.Health == nil || status == *q.Health) && q.Filter.Has(*e.Locality(), status)
}

// explainAll returns the health of endpoints, including those that no source has.
func explainAll(state State, keys []health.Endpoint) []api.EndpointHealth {
	list := make([]api.EndpointHealth, len(keys))
	for i := range keys {
		k := state.Cluster(keys[i].Cluster)
		if e := k.Find(&keys[i]); e != nil {
			list[i] = state.Explain(k, e)
		} else {
			list[i] = state.ExplainGone(keys[i])
		}
	}
	return list
}
