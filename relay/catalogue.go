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

// SourceName is the name of the source that has what the connected nodes have.
const SourceName = "relay"

// catalogue makes a source of the stock: the union over the nodes. It implements
// feed.Reader. All but latest belongs to the goroutine of Run.
type catalogue struct {
	server *Server
	stock  *stock
	where  string // the control plane

	mu     sync.Mutex
	latest *source.Set // guarded by mu

	made   map[string][]*source.Cluster // by the name of the nodes' cluster, or of a lone assignment
	unions map[string]*source.Assignment
	users  map[string]map[string]bool // by service: the clusters that use it
	uses   map[string][]string        // by cluster: its services

	slots   map[string]slots   // by cluster
	owned   map[string][]owned // by cluster, or lone assignment
	again   map[string]bool    // clusters to be made again
	bounded []string           // clusters that have too many versions now

	// Of the latest make.
	remade  map[string]bool   // names of which it made clusters
	outside map[string]string // by hdsd's own names: those names
}

func newCatalogue(s *Server, where string) *catalogue {
	return &catalogue{
		server: s, stock: s.stock, where: where, latest: &source.Set{Source: SourceName, Unread: true},
		made: map[string][]*source.Cluster{}, unions: map[string]*source.Assignment{},
		users: map[string]map[string]bool{}, uses: map[string][]string{},
		slots: map[string]slots{}, owned: map[string][]owned{}, again: map[string]bool{},
	}
}

// Latest implements feed.Reader.
func (c *catalogue) Latest() *source.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}

// Run implements feed.Reader: it hands on what the nodes have, and then lets those know
// who wait for it.
func (c *catalogue) Run(ctx context.Context, take func(*source.Set)) error {
	// What no node has asked for yet may still be wanted, until they have had time to
	// come back.
	over := time.NewTimer(c.server.options.Keep)
	defer over.Stop()
	forget := time.NewTicker(min(max(c.server.options.Keep/20, 50*time.Millisecond), time.Second))
	defer forget.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-forget.C:
			c.server.memory.expire(now)
			if unread := c.Latest().Unread; len(c.again) > 0 && !unread {
				c.hand(ctx, unread, take)
			}
			if broken := c.stock.breakPromises(now); len(broken) > 0 {
				c.server.book.renew(broken)
			}
		case <-over.C:
			c.hand(ctx, false, take)
		case <-c.stock.wake:
			c.stock.gather(ctx)
			c.hand(ctx, c.Latest().Unread, take)
		}
	}
}

// hand hands on a set.
func (c *catalogue) hand(ctx context.Context, unread bool, take func(*source.Set)) {
	set, moment, settled := c.make(unread)
	for _, name := range c.bounded {
		c.server.options.Log.Warn().Str("event", "relay_versions_full").Str("cluster", name).Int("checked", maxVersions).
			Msg("data planes have more versions of the cluster, with other checks, than hdsd checks: they get the others as they came")
	}
	c.bounded = nil
	c.mu.Lock()
	c.latest = set
	c.mu.Unlock()
	take(set)
	if c.server.options.Settle(ctx) != nil {
		return // hdsd stops
	}
	touched := c.stock.settle(settled, func(own string) string { return c.outside[own] })
	for name := range c.remade {
		touched = append(touched, c.server.book.own(name, c.owned[name])...)
	}
	c.server.memory.resettle(c.server, touched)
	c.server.book.renew(touched)
	c.stock.know(moment)
}

// make makes a set of what is in the stock. settled says of each cluster made again
// whether it has endpoints.
func (c *catalogue) make(unread bool) (set *source.Set, moment uint64, settled map[string]bool) {
	c.stock.mu.Lock()
	defer c.stock.mu.Unlock()
	names := c.dirtyClusters()
	c.remade, c.again, c.outside = map[string]bool{}, map[string]bool{}, map[string]string{}
	c.stock.dirty, moment = map[subject]bool{}, c.stock.learned

	with, settled := map[string]*source.Cluster{}, map[string]bool{}
	alone := map[string]bool{}
	for name := range names {
		for _, service := range c.uses[name] {
			alone[service] = true
		}
		note := func(own string, has bool) { c.outside[own], settled[own] = name, has }
		note(versionName(name, 0), false)
		for _, k := range c.made[name] {
			note(k.Name, false)
		}
		c.replace(name, c.variants(name, unread), with)
		for _, service := range c.uses[name] {
			alone[service] = true
		}
		for _, k := range c.made[name] {
			note(k.Name, hasEndpoints(k.Assignment))
		}
	}
	for service := range alone {
		if c.stock.byName[clusters][service].size() == 0 {
			c.replace(service, c.lone(service), with)
		}
	}
	before := c.Latest()
	return &source.Set{Source: SourceName, Unread: unread, Clusters: source.Amend(before.Clusters, with)}, moment, settled
}

func hasEndpoints(a *source.Assignment) bool {
	return rules.CountEncoded(rules.Assignment, a.Wire()) > 0
}

// dirtyClusters returns the clusters that a change concerns, and renews the unions of
// assignments that changed.
func (c *catalogue) dirtyClusters() map[string]bool {
	names := maps.Clone(c.again)
	for changed := range c.stock.dirty {
		names[changed.name] = true // of a cluster, or of a lone assignment
		if changed.kind == clusters {
			continue
		}
		for user := range c.users[changed.name] {
			names[user] = true
		}
		c.unite(changed.name, assignmentsOf(c.stock.byName[assignments][changed.name].list()))
	}
	return names
}

// keepOnly gives up the decoded clusters that are not used.
func keepOnly(bodies []*body, used map[*body]bool) {
	for _, x := range bodies {
		if !used[x] {
			x.thin()
		}
	}
}

// assignmentsOf returns what resources say of endpoints, once for those that have the same.
func assignmentsOf(bodies []*body) (all []*source.Assignment) {
	seen := map[uint64]bool{}
	for _, x := range bodies {
		if x.lists != nil && !x.crowded.Load() && !seen[x.places] {
			seen[x.places] = true
			all = append(all, x.lists)
		}
	}
	return all
}

// replace puts other clusters in the place of those made of a name.
func (c *catalogue) replace(name string, now []*source.Cluster, with map[string]*source.Cluster) {
	before := c.made[name]
	for _, k := range before {
		with[k.Name] = nil
	}
	for i, k := range now {
		if at := slices.IndexFunc(before, func(b *source.Cluster) bool { return sameCluster(b, k) }); at >= 0 {
			k = before[at]
			now[i] = k
		}
		with[k.Name] = k
	}
	c.remade[name] = true
	if c.made[name] = now; len(now) == 0 {
		delete(c.made, name)
		delete(c.owned, name)
	}
}

func sameCluster(a, b *source.Cluster) bool {
	return a.Name == b.Name && a.ServiceName == b.ServiceName && a.Config == b.Config && a.Assignment == b.Assignment && a.Rejected == b.Rejected
}

// lone makes a cluster of an assignment that no cluster uses.
func (c *catalogue) lone(service string) []*source.Cluster {
	bodies := c.stock.byName[assignments][service].list()
	if len(bodies) == 0 || len(c.users[service]) > 0 {
		return nil
	}
	own := versionName(service, 0)
	c.owned[service] = []owned{{version{cluster: service}, own, service}}
	k := &source.Cluster{Source: SourceName, Name: own, ServiceName: own, Lone: true, Assignment: c.unions[service], File: c.where}
	if k.Assignment == nil {
		k.Rejected = bodies[0].refusal()
	}
	return []*source.Cluster{k}
}

// variants makes the clusters of a name: one for each way in which nodes check it.
func (c *catalogue) variants(name string, awaited bool) []*source.Cluster {
	bodies := c.stock.byName[clusters][name].list()
	for _, service := range c.uses[name] {
		if delete(c.users[service], name); len(c.users[service]) == 0 {
			delete(c.users, service)
		}
	}
	delete(c.uses, name)
	kept := map[string]bool{}
	defer func(before []*source.Cluster) {
		for _, k := range before {
			if !kept[k.Name] {
				delete(c.unions, "\x00"+k.Name)
			}
		}
	}(c.made[name])
	if len(bodies) == 0 {
		delete(c.slots, name)
		return c.lone(name)
	}
	c.uses[name] = []string{name} // a lone assignment of that name gives way to it
	firsts, used := map[uint64]*body{}, map[*body]bool{}
	var groups []uint64 // in the order in which they came
	for _, x := range bodies {
		if x.refusal() == "" && firsts[x.group] == nil {
			groups = append(groups, x.group)
			firsts[x.group], used[x] = x, true
		}
	}
	keepOnly(bodies, used)
	before := c.slots[name]
	now := before.next(groups, awaited, func(g uint64) bool {
		stored := c.server.options.Stored
		return stored != nil && stored(versionName(name, g))
	})
	if c.slots[name] = now; now.again {
		c.again[name] = true
	}
	if len(now.beyond) > 0 && len(before.beyond) == 0 {
		c.bounded = append(c.bounded, name)
	}
	var all []*source.Cluster
	var have []owned
	add := func(g uint64, own string) {
		x := firsts[g]
		if x.byEDS {
			c.use(name, x.service)
		}
		kept[own] = true
		all, have = append(all, c.variant(x, own)), append(have, owned{version{name, g}, own, x.service})
	}
	if now.first != 0 {
		add(now.first, versionName(name, 0))
	}
	for _, g := range now.others {
		add(g, versionName(name, g))
	}
	for _, g := range now.beyond {
		have = append(have, owned{version: version{name, g}, service: firsts[g].service})
	}
	if len(all) == 0 {
		own := versionName(name, 0)
		have = append(have, owned{version{cluster: name}, own, name})
		all = []*source.Cluster{{Source: SourceName, Name: own, ServiceName: own, Rejected: bodies[0].refusal(), File: c.where}}
	}
	c.owned[name] = have
	return all
}

func (c *catalogue) use(name, service string) {
	if c.users[service] == nil {
		c.users[service] = map[string]bool{}
	}
	c.users[service][name] = true
	if !slices.Contains(c.uses[name], service) {
		c.uses[name] = append(c.uses[name], service)
	}
}

// variant makes a cluster of a version, with the endpoints of the nodes that have it.
func (c *catalogue) variant(x *body, own string) *source.Cluster {
	config := x.keep()
	k := &source.Cluster{
		Source: SourceName, Name: own, ServiceName: own, Config: config, HealthChecks: config.GetHealthChecks(), File: c.where,
	}
	all := c.stock.byName[clusters][x.name].list()
	if x.byEDS {
		all = c.stock.byName[assignments][x.service].list()
	}
	var theirs []*body
	for _, b := range all {
		if x.byEDS && b.belongs(version{x.name, x.group}) || !x.byEDS && b.group == x.group {
			theirs = append(theirs, b)
		}
	}
	union := "\x00" + own
	if x.byEDS && len(theirs) == len(all) { // the union of all is there
		union = x.service
		delete(c.unions, "\x00"+own)
	} else {
		c.unite(union, assignmentsOf(theirs))
	}
	k.Assignment = c.unions[union]
	return k
}

// unite makes the union of what nodes have under a name. It keeps its pointer while it
// stays the same.
func (c *catalogue) unite(name string, all []*source.Assignment) {
	if len(all) == 0 {
		delete(c.unions, name)
		return
	}
	now := all[0]
	if len(all) > 1 {
		now = union(all)
	}
	if !c.unions[name].Equal(now) {
		c.unions[name] = now
	}
}

// union lists the endpoints of several assignments, each once.
func union(all []*source.Assignment) *source.Assignment {
	out := all[0].Message()
	seen := map[publish.Key]bool{}
	for i, a := range all {
		for _, group := range a.Message().GetEndpoints() {
			more := &endpointv3.LocalityLbEndpoints{Locality: group.GetLocality()}
			for _, e := range group.GetLbEndpoints() {
				key := keyOf(group, e)
				if seen[key] {
					continue
				}
				seen[key] = true
				more.LbEndpoints = append(more.LbEndpoints, e)
			}
			if i > 0 && len(more.GetLbEndpoints()) > 0 {
				out.Endpoints = append(out.Endpoints, more)
			}
		}
	}
	return source.EncodeAssignment(out)
}

// settle notes which clusters have endpoints, by hdsd's own names, and returns those of which that is new.
func (s *stock) settle(now map[string]bool, outside func(own string) string) (touched []subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if s.settled[name] == now[name] {
			continue
		}
		if s.settled[name] = now[name]; !now[name] {
			delete(s.settled, name)
		}
		delete(s.promised, outside(name))
		touched = append(touched, subject{clusters, outside(name)})
	}
	return touched
}
