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

// addCluster adds the endpoints of a cluster, and tells whether all were looked
// at.
func (s *scan) addCluster(state State, k *catalog.Cluster) bool {
	first := 0
	if s.after != nil {
		first = sort.Search(len(k.Endpoints), func(i int) bool { return k.Endpoints[i].Key.Compare(*s.after) > 0 })
	}
	for i := first; i < len(k.Endpoints); i++ {
		e := &k.Endpoints[i]
		if s.cost >= stepCost {
			s.after = &health.Endpoint{} // before all
			if i > 0 {
				s.after = k.Endpoints[i-1].Key
			}
			return false
		}
		s.cost++
		if s.query.Address != "" && e.Key.Address != s.query.Address ||
			s.query.Health != nil && state.Status(e) != *s.query.Health {
			continue
		}
		if len(s.found) == s.query.Limit {
			s.more, s.finished = true, true
			return false
		}
		if s.keysOnly {
			s.found = append(s.found, api.EndpointHealth{Endpoint: *e.Key})
			continue
		}
		s.cost += explainCost
		s.found = append(s.found, state.Explain(k, e))
	}
	return true
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
	after    string
	limit    int
	may      access.Clusters
	found    []api.Cluster
	clusters []*catalog.Cluster // of found
	more     bool
	finished bool
}

// step goes on with a list of clusters.
func (s *clusterScan) step(state State) {
	names := state.Names()
	at, exact := slices.BinarySearch(names, s.after)
	if exact {
		at++
	}
	for cost := 0; at < len(names); at++ {
		if !s.may.Has(names[at]) {
			continue
		}
		if len(s.found) == s.limit {
			s.more, s.finished = true, true
			return
		}
		k := state.Cluster(names[at])
		if cost += 1 + len(k.Endpoints); cost > stepCost && cost > 1+len(k.Endpoints) {
			return
		}
		s.found, s.clusters, s.after = append(s.found, describe(state, k)), append(s.clusters, k), names[at]
	}
	s.finished = true
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
		switch status := state.Status(e); {
		case status.Up():
			out.Healthy++
		case status.Down():
			out.Unhealthy++
		case status == health.Unknown:
			out.Unknown++
		}
		if state.Overridden(e) {
			out.Overridden++
		}
		if reason := state.StrandedReason(k, e); reason != "" {
			stranded = append(stranded, api.Quarantined{Address: e.Key.Address, Reason: reason})
		}
	}
	otherReason := func(q api.Quarantined) bool { return q.Reason != stranded[0].Reason }
	if len(stranded) > 0 && len(stranded) == len(k.Endpoints) && !slices.ContainsFunc(stranded, otherReason) {
		stranded = []api.Quarantined{{Reason: stranded[0].Reason}} // the whole cluster
	}
	out.Quarantined = append(out.Quarantined, stranded...)
	return out
}
