package hold

import (
	"hash/fnv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/envoy"
	"hdsd/source"
)

// addressOf names an endpoint within its cluster; empty without address and name. Its locality
// does not count: an endpoint that moves is not removed.
func addressOf(e *endpointv3.LbEndpoint) string {
	if name := e.GetEndpointName(); name != "" {
		return "name:" + name
	}
	return envoy.Address(e.GetEndpoint().GetAddress())
}

// counted reports whether the endpoints of a cluster count. LOGICAL_DNS has exactly one.
func counted(c *source.Cluster) bool {
	return c.Config.GetType() != clusterv3.Cluster_LOGICAL_DNS
}

func forEachAddress(c *source.Cluster, visit func(address string)) {
	if !counted(c) {
		return
	}
	for _, l := range c.Assignment.Message().GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			if address := addressOf(e); address != "" {
				visit(address)
			}
		}
	}
}

func addresses(c *source.Cluster) map[string]struct{} {
	set := map[string]struct{}{}
	forEachAddress(c, func(address string) { set[address] = struct{}{} })
	return set
}

// removedAddresses returns the endpoints of a cluster that its successor lacks. The end of a
// lease does not count: the source set the time itself.
func removedAddresses(before, after *source.Cluster) map[string]struct{} {
	if after.Stale || before.Assignment.Equal(after.Assignment) || !counted(after) {
		return nil
	}
	lost := addresses(before)
	forEachAddress(after, func(address string) { delete(lost, address) })
	return lost
}

func setOf[T any](m map[string]T) map[string]struct{} {
	set := make(map[string]struct{}, len(m))
	for name := range m {
		set[name] = struct{}{}
	}
	return set
}

// build returns the cluster with its held parts. reported is the source's cluster, or nil.
func (t *removal) build(reported *source.Cluster) *source.Cluster {
	if t.built != nil && t.reported == reported {
		return t.built
	}
	c := &source.Cluster{}
	switch {
	case reported == nil:
		*c = *t.kept
		c.Assignment = t.loneAssignment()
	case counted(reported):
		*c = *reported
		c.Assignment = t.add(reported.Assignment)
	default:
		*c = *reported
	}
	t.reported, t.built = reported, c
	return c
}

// loneAssignment returns the held endpoints of a cluster that the source lacks.
func (t *removal) loneAssignment() *source.Assignment {
	if t.kept.Assignment == nil || !counted(t.kept) {
		return t.kept.Assignment
	}
	return source.EncodeAssignment(t.keptBut(nil))
}

// add returns an assignment with the held endpoints that it lacks.
func (t *removal) add(target *source.Assignment) *source.Assignment {
	if target == nil {
		return source.EncodeAssignment(t.keptBut(nil))
	}
	a := target.Message()
	type place struct {
		region, zone, subZone string
		priority              uint32
	}
	placeOf := func(l *endpointv3.LocalityLbEndpoints) place {
		locality := l.GetLocality()
		return place{locality.GetRegion(), locality.GetZone(), locality.GetSubZone(), l.GetPriority()}
	}
	index, priorities := map[place]int{}, uint32(0)
	for i, l := range a.Endpoints {
		if l.GetLbConfig() == nil {
			index[placeOf(l)] = i
		}
		priorities = max(priorities, l.GetPriority()+1)
	}
	for _, l := range t.keptBut(addresses(&source.Cluster{Assignment: target})).GetEndpoints() {
		l.Priority = min(l.GetPriority(), priorities) // no priority may be left out
		priorities = max(priorities, l.GetPriority()+1)
		i, ok := index[placeOf(l)]
		if !ok {
			index[placeOf(l)] = len(a.Endpoints)
			a.Endpoints = append(a.Endpoints, l)
			continue
		}
		a.Endpoints[i].LbEndpoints = append(a.Endpoints[i].LbEndpoints, l.GetLbEndpoints()...)
	}
	return source.EncodeAssignment(a)
}

// keptBut returns an assignment of the held endpoints, without some.
func (t *removal) keptBut(except map[string]struct{}) *endpointv3.ClusterLoadAssignment {
	a := t.kept.Assignment.Message()
	var localities []*endpointv3.LocalityLbEndpoints
	for _, l := range a.GetEndpoints() {
		var endpoints []*endpointv3.LbEndpoint
		for _, e := range l.GetLbEndpoints() {
			address := addressOf(e)
			_, held := t.endpoints[address]
			if _, ok := except[address]; held && !ok {
				endpoints = append(endpoints, e)
			}
		}
		if l.LbEndpoints = endpoints; len(endpoints) > 0 {
			localities = append(localities, l)
		}
	}
	if a != nil {
		a.Endpoints = localities
	}
	return a
}

// hash returns the same value in each process.
func hash(cluster, address string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(cluster))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(address))
	return h.Sum64()
}

// counts is the size of the set in use.
type counts struct {
	byCluster           map[string]size
	clusters, endpoints int
}

// size is the size of one cluster.
type size struct{ clusters, endpoints int }

func countsOf(set *source.Set) counts {
	n := counts{byCluster: map[string]size{}}
	n.update(nil, set)
	return n
}

// update counts the difference between two sets. It returns the previous sizes of changed
// clusters.
func (n *counts) update(before, after *source.Set) map[string]size {
	var old, now []*source.Cluster
	if before != nil {
		old = before.Clusters
	}
	if after != nil {
		now = after.Clusters
	}
	changed, removed := source.Changes(old, now)
	previous := make(map[string]size, len(changed)+len(removed))
	for _, c := range removed {
		previous[c.Name] = n.remove(c.Name)
	}
	for _, c := range changed {
		previous[c.Name] = n.remove(c.Name)
		n.add(c)
	}
	return previous
}

func (n *counts) add(c *source.Cluster) {
	size := size{endpoints: len(addresses(c))}
	if !c.Lone {
		size.clusters = 1
	}
	n.byCluster[c.Name] = size
	n.clusters += size.clusters
	n.endpoints += size.endpoints
}

func (n *counts) remove(name string) size {
	size := n.byCluster[name]
	delete(n.byCluster, name)
	n.clusters -= size.clusters
	n.endpoints -= size.endpoints
	return size
}
