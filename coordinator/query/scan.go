package query

import (
	"slices"
	"sort"

	"hdsd/access"
	"hdsd/api"
	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// What a step of a list may cost before the core goes on with other events.
// Looking at an endpoint costs 1, explaining its verdict more.
const (
	stepCost    = 20_000
	explainCost = 10
)

// scan is how far a list of endpoints has come.
type scan struct {
	query    api.EndpointQuery
	may      access.Clusters
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
	at, exact := slices.BinarySearch(names, s.cluster)
	if s.query.Cluster != "" && (!exact || !s.may.Has(s.query.Cluster)) {
		s.finished = true
		return
	}
	switch {
	case s.keysOnly && s.keys == nil:
		s.keys = make([]health.Endpoint, 0, s.most(state, names[at:]))
	case !s.keysOnly && s.found == nil:
		s.found = make([]api.EndpointHealth, 0, s.most(state, names[at:]))
	}
	for ; at < len(names); at++ {
		if s.cluster = names[at]; !s.may.Has(s.cluster) {
			s.after = nil
			continue
		}
		if !s.addCluster(state, state.Cluster(s.cluster)) {
			return
		}
		if s.query.Cluster != "" {
			break
		}
		s.after = nil
	}
	s.finished = true
}

// most is how many endpoints of some clusters the list may have; 0 if it leaves out some.
func (s *scan) most(state State, names []string) (n int) {
	if s.query.Cluster != "" || s.query.Address != "" || s.query.Health != nil || !s.query.Filter.Any() || !s.may.All() {
		return 0
	}
	for i := 0; i < len(names) && n < s.query.Limit; i++ {
		n += len(state.Cluster(names[i]).Endpoints)
	}
	return min(n, s.query.Limit)
}

// addCluster adds the endpoints of a cluster, and tells whether all were looked
// at.
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

// wants tells whether the query lets an endpoint pass. It looks at no more than it has to.
func (s *scan) wants(state State, e *catalog.Endpoint) bool {
	q := &s.query
	if q.Address != "" && e.Address() != q.Address {
		return false
	}
	if q.Health == nil && !q.Filter.Unhealthy {
		return q.Filter.Any() || q.Filter.In(*e.Locality())
	}
	is := state.Status(e)
	return (q.Health == nil || is == *q.Health) && q.Filter.Has(*e.Locality(), is)
}

// explainAll gives the health of endpoints, including those that no source has.
func explainAll(state State, keys []health.Endpoint) []api.EndpointHealth {
	all := make([]api.EndpointHealth, len(keys))
	for i := range keys {
		k := state.Cluster(keys[i].Cluster)
		if e := k.Find(&keys[i]); e != nil {
			all[i] = state.Explain(k, e)
		} else {
			all[i] = state.ExplainGone(keys[i])
		}
	}
	return all
}
