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

// clusterScan is how far a list of clusters has come.
type clusterScan struct {
	api.ClusterQuery
	may      access.Clusters
	found    []api.Cluster
	clusters []*catalog.Cluster // of found
	more     bool
	finished bool
}

// step goes on with a list of clusters.
func (s *clusterScan) step(state State) {
	names := state.Names()
	at, exact := slices.BinarySearch(names, s.After)
	if exact {
		at++
	}
	if s.Cluster != "" {
		s.one(state)
		return
	}
	for cost := 0; at < len(names); at++ {
		if !s.may.Has(names[at]) {
			continue
		}
		k := state.Cluster(names[at])
		if cost += 1 + len(k.Endpoints); cost > stepCost && cost > 1+len(k.Endpoints) {
			return
		}
		if !s.wants(state, k) {
			s.After = names[at]
			continue
		}
		if len(s.found) == s.Limit {
			s.more, s.finished = true, true
			return
		}
		s.found, s.clusters, s.After = append(s.found, describe(state, k)), append(s.clusters, k), names[at]
	}
	s.finished = true
}

// one lists the cluster that is asked for, if there is one, with its health checks.
func (s *clusterScan) one(state State) {
	s.finished = true
	k := state.Cluster(s.Cluster)
	if k == nil || !s.may.Has(s.Cluster) || s.After != "" || !s.wants(state, k) {
		return
	}
	found := describe(state, k)
	if k.IsChecked() {
		found.HealthChecks = k.Checked.Checks()
	}
	s.found, s.clusters = append(s.found, found), append(s.clusters, k)
}

// wants tells whether the filter lets a cluster pass.
func (s *clusterScan) wants(state State, k *catalog.Cluster) bool {
	if s.Filter.Any() {
		return true
	}
	pass := func(e catalog.Endpoint) bool { return s.Filter.Has(*e.Locality(), state.Status(&e)) }
	if slices.ContainsFunc(k.Endpoints, pass) {
		return true
	}
	inside := s.Filter.Locality == (health.Locality{}) || slices.ContainsFunc(k.Endpoints, func(e catalog.Endpoint) bool { return s.Filter.In(*e.Locality()) })
	return s.Filter.Unhealthy && inside && len(describe(state, k).Quarantined) > 0
}

// describe counts a cluster's endpoints and lists those that are not checked.
func describe(state State, k *catalog.Cluster) api.Cluster {
	out := api.Cluster{Name: k.Source.Name, Source: k.Source.Source, Checked: k.IsChecked(), Mode: state.Mode(k), Endpoints: len(k.Endpoints)}
	for _, q := range k.Exclusions() {
		out.Quarantined = append(out.Quarantined, api.Quarantined{Address: q.Address, Reason: q.Reason})
	}
	if reason := state.BlockedReason(k); reason != "" {
		out.Quarantined = append(out.Quarantined, api.Quarantined{Reason: reason})
	}
	for _, q := range k.Disabled {
		out.Quarantined = append(out.Quarantined, api.Quarantined{Address: q.Address, Reason: q.Reason})
	}
	var stranded []api.Quarantined
	for i := range k.Endpoints {
		e := &k.Endpoints[i]
		count(&out, state.Status(e))
		is := state.Condition(e)
		if is.Overridden {
			out.Overridden++
		}
		if !is.HeldSince.IsZero() {
			out.Held++
		}
		if reason := state.StrandedReason(k, e); reason != "" {
			stranded = append(stranded, api.Quarantined{Address: e.Address(), Reason: reason})
		}
	}
	otherReason := func(q api.Quarantined) bool { return q.Reason != stranded[0].Reason }
	if len(stranded) > 0 && len(stranded) == len(k.Endpoints) && !slices.ContainsFunc(stranded, otherReason) {
		stranded = []api.Quarantined{{Reason: stranded[0].Reason}} // the whole cluster
	}
	out.Quarantined = append(out.Quarantined, stranded...)
	return out
}

// count counts an endpoint of a cluster by its health.
func count(k *api.Cluster, is health.Status) {
	switch is {
	case health.Healthy:
		k.Healthy++
	case health.Degraded:
		k.Healthy++
		k.Degraded++
	case health.Unhealthy:
		k.Unhealthy++
	case health.Timeout:
		k.Unhealthy++
		k.Timeout++
	case health.Draining:
		k.Draining++
	default:
		k.Unknown++
	}
}
