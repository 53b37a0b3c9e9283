package hold

import (
	"hash/fnv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/internal/envoyaddr"
	"hdsd/source"
)

// addressOf names an endpoint within its cluster; empty if it has neither an address nor
// a name. Its locality does not count: one that moves is not gone.
func addressOf(e *endpointv3.LbEndpoint) string {
	if name := e.GetEndpointName(); name != "" {
		return "name:" + name
	}
	return envoyaddr.Address(e.GetEndpoint().GetAddress())
}

// counted reports whether the endpoints of a cluster are looked at. That of LOGICAL_DNS
// is the only one that it may have.
func counted(c *source.Cluster) bool {
	return c.Config.GetType() != clusterv3.Cluster_LOGICAL_DNS
}

func each(c *source.Cluster, visit func(address string)) {
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
	all := map[string]struct{}{}
	each(c, func(address string) { all[address] = struct{}{} })
	return all
}

// without returns the endpoints of a cluster that its successor lacks. The end of a lease
// takes away nothing: the source set the time itself.
func without(before, after *source.Cluster) map[string]struct{} {
	if after.Stale || before.Assignment.Equal(after.Assignment) || !counted(after) {
		return nil
	}
	lost := addresses(before)
	each(after, func(address string) { delete(lost, address) })
	return lost
}

func setOf[T any](from map[string]T) map[string]struct{} {
	all := make(map[string]struct{}, len(from))
	for name := range from {
		all[name] = struct{}{}
	}
	return all
}

// build returns the cluster with what is held of it. said is what the source says of it,
// or nil.
func (t *taken) build(said *source.Cluster) *source.Cluster {
	if t.built != nil && t.said == said {
		return t.built
	}
	c := &source.Cluster{}
	switch {
	case said == nil:
		*c = *t.kept
		c.Assignment = t.only()
	case counted(said):
		*c = *said
		c.Assignment = t.add(said.Assignment)
	default:
		*c = *said
	}
	t.said, t.built = said, c
	return c
}

// only returns the assignment of a cluster that the source lacks: what of it is still
// held.
func (t *taken) only() *source.Assignment {
	if t.kept.Assignment == nil || !counted(t.kept) {
		return t.kept.Assignment
	}
	return source.EncodeAssignment(t.keptBut(nil))
}

// add returns an assignment with the held endpoints that it lacks.
func (t *taken) add(to *source.Assignment) *source.Assignment {
	if to == nil {
		return source.EncodeAssignment(t.keptBut(nil))
	}
	a := to.Message()
	type place struct {
		region, zone, subZone string
		priority              uint32
	}
	placeOf := func(l *endpointv3.LocalityLbEndpoints) place {
		at := l.GetLocality()
		return place{at.GetRegion(), at.GetZone(), at.GetSubZone(), l.GetPriority()}
	}
	known, priorities := map[place]int{}, uint32(0)
	for i, l := range a.Endpoints {
		if l.GetLbConfig() == nil {
			known[placeOf(l)] = i
		}
		priorities = max(priorities, l.GetPriority()+1)
	}
	for _, l := range t.keptBut(addresses(&source.Cluster{Assignment: to})).GetEndpoints() {
		l.Priority = min(l.GetPriority(), priorities) // no priority may be left out
		priorities = max(priorities, l.GetPriority()+1)
		i, ok := known[placeOf(l)]
		if !ok {
			known[placeOf(l)] = len(a.Endpoints)
			a.Endpoints = append(a.Endpoints, l)
			continue
		}
		a.Endpoints[i].LbEndpoints = append(a.Endpoints[i].LbEndpoints, l.GetLbEndpoints()...)
	}
	return source.EncodeAssignment(a)
}

// keptBut returns an assignment of what is held, without the endpoints of a set.
func (t *taken) keptBut(but map[string]struct{}) *endpointv3.ClusterLoadAssignment {
	a := t.kept.Assignment.Message()
	var all []*endpointv3.LocalityLbEndpoints
	for _, l := range a.GetEndpoints() {
		var some []*endpointv3.LbEndpoint
		for _, e := range l.GetLbEndpoints() {
			address := addressOf(e)
			_, held := t.endpoints[address]
			if _, there := but[address]; held && !there {
				some = append(some, e)
			}
		}
		if l.LbEndpoints = some; len(some) > 0 {
			all = append(all, l)
		}
	}
	if a != nil {
		a.Endpoints = all
	}
	return a
}

// hash is the same in each process.
func hash(cluster, address string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(cluster))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(address))
	return h.Sum64()
}

// counts is how much is in use.
type counts struct {
	by                  map[string]size
	clusters, endpoints int
}

// size is that of one cluster.
type size struct{ clusters, endpoints int }

func countsOf(set *source.Set) counts {
	n := counts{by: map[string]size{}}
	n.update(nil, set)
	return n
}

// update counts the difference between two sets. It returns what the clusters that have
// changed were.
func (n *counts) update(before, after *source.Set) map[string]size {
	var old, now []*source.Cluster
	if before != nil {
		old = before.Clusters
	}
	if after != nil {
		now = after.Clusters
	}
	changed, removed := source.Changes(old, now)
	was := make(map[string]size, len(changed)+len(removed))
	for _, c := range removed {
		was[c.Name] = n.remove(c.Name)
	}
	for _, c := range changed {
		was[c.Name] = n.remove(c.Name)
		n.add(c)
	}
	return was
}

func (n *counts) add(c *source.Cluster) {
	one := size{endpoints: len(addresses(c))}
	if !c.Lone {
		one.clusters = 1
	}
	n.by[c.Name] = one
	n.clusters += one.clusters
	n.endpoints += one.endpoints
}

func (n *counts) remove(name string) size {
	one := n.by[name]
	delete(n.by, name)
	n.clusters -= one.clusters
	n.endpoints -= one.endpoints
	return one
}
