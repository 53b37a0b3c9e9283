package relay

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/envoy/rules"
	"hdsd/publish"
	"hdsd/source"
)

// SourceName is the name of the source with the clusters and endpoints of nodes.
const SourceName = "relay"

// catalogue makes a source of the stock: the union over the nodes. It implements feed.Reader. Only the
// goroutine of Run uses the fields, latest apart.
type catalogue struct {
	server   *Server
	stock    *stock
	upstream string // addresses of the control plane

	mu     sync.Mutex
	latest *source.Set // guarded by mu

	clusters map[string][]*source.Cluster // by the nodes' name of a cluster, or of a lone assignment
	unions   map[string]*source.Assignment
	users    map[string]map[string]bool // clusters, by service
	services map[string][]string        // services, by cluster

	slots      map[string]slots          // by cluster
	versions   map[string][]versionEntry // by cluster, or lone assignment
	unfinished map[string]bool           // clusters that the next build has to look at
	excess     []string                  // clusters that have too many versions since the latest build

	// Of the latest build.
	remade       map[string]bool   // nodes' names of its clusters
	clusterNames map[string]string // nodes' names, by hdsd's names
}

func newCatalogue(s *Server, upstream string) *catalogue {
	return &catalogue{
		server: s, stock: s.stock, upstream: upstream, latest: &source.Set{Source: SourceName, Unread: true},
		clusters: map[string][]*source.Cluster{}, unions: map[string]*source.Assignment{},
		users: map[string]map[string]bool{}, services: map[string][]string{},
		slots: map[string]slots{}, versions: map[string][]versionEntry{}, unfinished: map[string]bool{},
	}
}

// Latest implements feed.Reader.
func (c *catalogue) Latest() *source.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}

// Run implements feed.Reader: it publishes sets, and then lets waiting responses know.
func (c *catalogue) Run(ctx context.Context, publish func(*source.Set)) error {
	// Absent resources count as unread until nodes have had time to come back.
	unreadTimer := time.NewTimer(c.server.options.Keep)
	defer unreadTimer.Stop()
	expiryTicker := time.NewTicker(min(max(c.server.options.Keep/20, 50*time.Millisecond), time.Second))
	defer expiryTicker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case moment := <-expiryTicker.C:
			c.server.memory.expire(moment)
			if unread := c.Latest().Unread; len(c.unfinished) > 0 && !unread {
				c.publish(ctx, unread, publish)
			}
			if broken := c.stock.breakPromises(moment); len(broken) > 0 {
				c.server.book.renew(broken)
			}
		case <-unreadTimer.C:
			c.publish(ctx, false, publish)
		case <-c.stock.wake:
			c.stock.gather(ctx)
			c.publish(ctx, c.Latest().Unread, publish)
		}
	}
}

// publish builds a set, hands it to take, and tells the book and the stock when hdsd's core knows it.
func (c *catalogue) publish(ctx context.Context, unread bool, take func(*source.Set)) {
	set, moment, settled := c.build(unread)
	for _, name := range c.excess {
		c.server.options.Log.Warn().Str("event", "relay_versions_full").Str("cluster", name).Int("checked", maxVersions).
			Msg("data planes have more versions of the cluster, with other checks, than hdsd checks: they get the others as they came")
	}
	c.excess = nil
	c.mu.Lock()
	c.latest = set
	c.mu.Unlock()
	take(set)
	if c.server.options.Settle(ctx) != nil {
		return // hdsd stops
	}
	touched := c.stock.settle(settled, func(name string) string { return c.clusterNames[name] })
	for name := range c.remade {
		touched = append(touched, c.server.book.setVersions(name, c.versions[name])...)
	}
	c.server.memory.updatePanels(c.server, touched)
	c.server.book.renew(touched)
	c.stock.setApplied(moment)
}

// build makes a set of the stock. settled says of each rebuilt cluster, by hdsd's name, whether it has
// endpoints.
func (c *catalogue) build(unread bool) (set *source.Set, moment uint64, settled map[string]bool) {
	c.stock.mu.Lock()
	defer c.stock.mu.Unlock()
	names := c.dirtyClusters()
	c.remade, c.unfinished, c.clusterNames = map[string]bool{}, map[string]bool{}, map[string]string{}
	c.stock.dirty, moment = map[subject]bool{}, c.stock.learned

	changes, settled := map[string]*source.Cluster{}, map[string]bool{}
	services := map[string]bool{}
	for name := range names {
		for _, service := range c.services[name] {
			services[service] = true
		}
		note := func(ownName string, endpoints bool) { c.clusterNames[ownName], settled[ownName] = name, endpoints }
		note(versionName(name, 0), false)
		for _, k := range c.clusters[name] {
			note(k.Name, false)
		}
		c.replace(name, c.clusterVersions(name, unread), changes)
		for _, service := range c.services[name] {
			services[service] = true
		}
		for _, k := range c.clusters[name] {
			note(k.Name, hasEndpoints(k.Assignment))
		}
	}
	for service := range services {
		if c.stock.byName[clusters][service].size() == 0 {
			c.replace(service, c.lone(service), changes)
		}
	}
	previous := c.Latest()
	return &source.Set{Source: SourceName, Unread: unread, Clusters: source.Amend(previous.Clusters, changes)}, moment, settled
}

func hasEndpoints(a *source.Assignment) bool {
	return rules.CountEncoded(rules.Assignment, a.Wire()) > 0
}

// dirtyClusters returns the clusters that changes concern, and renews the unions of changed assignments.
func (c *catalogue) dirtyClusters() map[string]bool {
	names := maps.Clone(c.unfinished)
	for changed := range c.stock.dirty {
		names[changed.name] = true // a cluster, or a lone assignment
		if changed.kind == clusters {
			continue
		}
		for user := range c.users[changed.name] {
			names[user] = true
		}
		c.setUnion(changed.name, assignmentsOf(c.stock.byName[assignments][changed.name].list()))
	}
	return names
}

// dropUnused gives up the decoded clusters that are not used.
func dropUnused(bodies []*body, used map[*body]bool) {
	for _, x := range bodies {
		if !used[x] {
			x.releaseDecoded()
		}
	}
}

// assignmentsOf returns the assignments of resources, one for each set of endpoints.
func assignmentsOf(bodies []*body) (list []*source.Assignment) {
	hashes := map[uint64]bool{}
	for _, x := range bodies {
		if x.assignment != nil && !x.excess.Load() && !hashes[x.endpointHash] {
			hashes[x.endpointHash] = true
			list = append(list, x.assignment)
		}
	}
	return list
}

// replace replaces the clusters of a name. An equal cluster stays the same pointer.
func (c *catalogue) replace(name string, current []*source.Cluster, changes map[string]*source.Cluster) {
	previous := c.clusters[name]
	for _, k := range previous {
		changes[k.Name] = nil
	}
	for i, k := range current {
		if index := slices.IndexFunc(previous, func(b *source.Cluster) bool { return sameCluster(b, k) }); index >= 0 {
			k = previous[index]
			current[i] = k
		}
		changes[k.Name] = k
	}
	c.remade[name] = true
	if c.clusters[name] = current; len(current) == 0 {
		delete(c.clusters, name)
		delete(c.versions, name)
	}
}

func sameCluster(a, b *source.Cluster) bool {
	return a.Name == b.Name && a.ServiceName == b.ServiceName && a.Config == b.Config && a.Assignment == b.Assignment && a.Rejected == b.Rejected
}

// lone makes a cluster of an assignment that no cluster uses; nil: there is none.
func (c *catalogue) lone(service string) []*source.Cluster {
	bodies := c.stock.byName[assignments][service].list()
	if len(bodies) == 0 || len(c.users[service]) > 0 {
		return nil
	}
	name := versionName(service, 0)
	c.versions[service] = []versionEntry{{version{cluster: service}, name, service}}
	k := &source.Cluster{Source: SourceName, Name: name, ServiceName: name, Lone: true, Assignment: c.unions[service], File: c.upstream}
	if k.Assignment == nil {
		k.Rejected = bodies[0].refusal()
	}
	return []*source.Cluster{k}
}

// clusterVersions makes the clusters of a name: one for each version that hdsd checks.
func (c *catalogue) clusterVersions(name string, awaited bool) []*source.Cluster {
	bodies := c.stock.byName[clusters][name].list()
	for _, service := range c.services[name] {
		if delete(c.users[service], name); len(c.users[service]) == 0 {
			delete(c.users, service)
		}
	}
	delete(c.services, name)
	kept := map[string]bool{}
	defer func(previous []*source.Cluster) {
		for _, k := range previous {
			if !kept[k.Name] {
				delete(c.unions, "\x00"+k.Name)
			}
		}
	}(c.clusters[name])
	if len(bodies) == 0 {
		delete(c.slots, name)
		return c.lone(name)
	}
	c.services[name] = []string{name} // it replaces a lone assignment of its name
	firsts, used := map[uint64]*body{}, map[*body]bool{}
	var groups []uint64 // the oldest first
	for _, x := range bodies {
		if x.refusal() == "" && firsts[x.group] == nil {
			groups = append(groups, x.group)
			firsts[x.group], used[x] = x, true
		}
	}
	dropUnused(bodies, used)
	previous := c.slots[name]
	current := previous.update(groups, awaited, func(g uint64) bool {
		stored := c.server.options.Stored
		return stored != nil && stored(versionName(name, g))
	})
	if c.slots[name] = current; current.unfinished {
		c.unfinished[name] = true
	}
	if len(current.unchecked) > 0 && len(previous.unchecked) == 0 {
		c.excess = append(c.excess, name)
	}
	var result []*source.Cluster
	var entries []versionEntry
	add := func(g uint64, ownName string) {
		x := firsts[g]
		if x.eds {
			c.addUser(name, x.service)
		}
		kept[ownName] = true
		result, entries = append(result, c.versionCluster(x, ownName)), append(entries, versionEntry{version{name, g}, ownName, x.service})
	}
	if current.first != 0 {
		add(current.first, versionName(name, 0))
	}
	for _, g := range current.suffixed {
		add(g, versionName(name, g))
	}
	for _, g := range current.unchecked {
		entries = append(entries, versionEntry{version: version{name, g}, service: firsts[g].service})
	}
	if len(result) == 0 {
		ownName := versionName(name, 0)
		entries = append(entries, versionEntry{version{cluster: name}, ownName, name})
		result = []*source.Cluster{{Source: SourceName, Name: ownName, ServiceName: ownName, Rejected: bodies[0].refusal(), File: c.upstream}}
	}
	c.versions[name] = entries
	return result
}

func (c *catalogue) addUser(name, service string) {
	if c.users[service] == nil {
		c.users[service] = map[string]bool{}
	}
	c.users[service][name] = true
	if !slices.Contains(c.services[name], service) {
		c.services[name] = append(c.services[name], service)
	}
}

// versionCluster makes a cluster of a version, with the endpoints of its nodes.
func (c *catalogue) versionCluster(x *body, name string) *source.Cluster {
	config := x.retainDecoded()
	k := &source.Cluster{
		Source: SourceName, Name: name, ServiceName: name, Config: config, HealthChecks: config.GetHealthChecks(), File: c.upstream,
	}
	candidates := c.stock.byName[clusters][x.name].list()
	if x.eds {
		candidates = c.stock.byName[assignments][x.service].list()
	}
	var bodies []*body
	for _, b := range candidates {
		if x.eds && b.hasVersion(version{x.name, x.group}) || !x.eds && b.group == x.group {
			bodies = append(bodies, b)
		}
	}
	union := "\x00" + name
	if x.eds && len(bodies) == len(candidates) { // dirtyClusters has made the union of all
		union = x.service
		delete(c.unions, "\x00"+name)
	} else {
		c.setUnion(union, assignmentsOf(bodies))
	}
	k.Assignment = c.unions[union]
	return k
}

// setUnion makes the union of assignments under a name. An equal union stays the same pointer.
func (c *catalogue) setUnion(name string, list []*source.Assignment) {
	if len(list) == 0 {
		delete(c.unions, name)
		return
	}
	current := list[0]
	if len(list) > 1 {
		current = union(list)
	}
	if !c.unions[name].Equal(current) {
		c.unions[name] = current
	}
}

// union makes an assignment with the endpoints of several, each once.
func union(list []*source.Assignment) *source.Assignment {
	result := list[0].Message()
	keys := map[publish.Key]bool{}
	for i, a := range list {
		for _, group := range a.Message().GetEndpoints() {
			added := &endpointv3.LocalityLbEndpoints{Locality: group.GetLocality()}
			for _, e := range group.GetLbEndpoints() {
				key := keyOf(group, e)
				if keys[key] {
					continue
				}
				keys[key] = true
				added.LbEndpoints = append(added.LbEndpoints, e)
			}
			if i > 0 && len(added.GetLbEndpoints()) > 0 {
				result.Endpoints = append(result.Endpoints, added)
			}
		}
	}
	return source.EncodeAssignment(result)
}

// settle notes which clusters have endpoints, by hdsd's names, and returns those that changed. outside returns
// the nodes' name.
func (s *stock) settle(current map[string]bool, outside func(name string) string) (touched []subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(current)) {
		if s.settled[name] == current[name] {
			continue
		}
		if s.settled[name] = current[name]; !current[name] {
			delete(s.settled, name)
		}
		delete(s.promised, outside(name))
		touched = append(touched, subject{clusters, outside(name)})
	}
	return touched
}
