package eds

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"pgregory.net/rapid"

	"hdsd/health"
	"hdsd/publish"
)

// zoneWorld is the truth about assignments of endpoints 10, 11, ... and 20, 21, ...
type zoneWorld struct {
	server  *Server
	sizes   map[string]int // of what is published
	global  map[health.EndpointID]health.Status
	ofZones map[health.Locality]map[health.EndpointID]health.Status
}

var zoneNames = []string{"n1", "n2"}

func firstOf(name string) health.EndpointID { return health.EndpointID(10 * (name[1] - '0')) }

func (w *zoneWorld) summary(l *discoveryv3.ResourceLocator) string {
	text := ""
	for i := range w.sizes[l.GetName()] {
		id := firstOf(l.GetName()) + health.EndpointID(i)
		zone := health.Locality{Region: l.GetDynamicParameters()[RegionParameter], Zone: l.GetDynamicParameters()[ZoneParameter]}
		status, ok := w.ofZones[zone][id]
		if !ok || zone.Zone == "" {
			status = w.global[id]
		}
		text += status.String()[:2]
	}
	return text
}

func (w *zoneWorld) change(s step) {
	name := zoneNames[s.name%2]
	id := firstOf(name) + health.EndpointID(s.value%3)
	status := health.Status(1 + s.value%5)
	zone := health.Locality{Zone: string(rune('x' + s.value/10%2)), Region: []string{"", "eu"}[s.value/20%2]}
	switch s.kind {
	case 0, 1:
		w.global[id] = status
		w.server.setHealth(id, status)
	case 2, 3:
		if w.ofZones[zone] == nil {
			w.ofZones[zone] = map[health.EndpointID]health.Status{}
		}
		w.ofZones[zone][id] = status
		w.server.SetZoneHealth(zone, []publish.Health{{ID: id, Status: status}}, nil)
	case 4:
		delete(w.ofZones[zone], id)
		w.server.SetZoneHealth(zone, nil, []health.EndpointID{id})
	case 5:
		w.sizes[name] = 1 + s.value%3
		w.server.Update(publish.Update{Assignments: []publish.Assignment{assignment(name, firstOf(name), w.sizes[name])}})
	case 6:
		delete(w.sizes, name)
		w.server.Update(publish.Update{RemovedAssignments: []string{name}})
	}
}

// zoneClient is a delta client of some variants of each name.
type zoneClient struct {
	b     *bench
	p     *deltaPeer
	wants map[string]*discoveryv3.ResourceLocator // by key
	has   map[string]string                       // by key
}

func (c *zoneClient) act(s step) {
	l := locator(zoneNames[s.name%2], "zone", string(rune('x'+s.value%3)))
	if s.value/3%2 == 1 {
		l.DynamicParameters[RegionParameter] = "eu"
	}
	if s.value%4 == 3 {
		delete(l.DynamicParameters, ZoneParameter)
	}
	key := locatorKey(l) // which is the same for those that choose the same
	switch s.kind {
	case 7, 8:
		c.wants[key] = l
		c.p.send(locate(l))
	case 9:
		if c.wants[key] != nil {
			delete(c.wants, key)
			delete(c.has, key)
			c.p.send(&discoveryv3.DeltaDiscoveryRequest{
				TypeUrl: resourcev3.EndpointType, ResourceLocatorsUnsubscribe: []*discoveryv3.ResourceLocator{l},
			})
		}
	case 10:
		c.deliver()
	case 11:
		c.p.cancel()
		synctest.Wait()
		c.p = c.b.delta()
		clear(c.has)
		m := locate()
		for _, l := range c.wants {
			m.ResourceLocatorsSubscribe = append(m.ResourceLocatorsSubscribe, l)
		}
		if len(c.wants) > 0 {
			c.p.send(m)
		}
	}
}

// deliver accepts the next response, and finds its variants by their constraints.
func (c *zoneClient) deliver() bool {
	synctest.Wait()
	var r *discoveryv3.DeltaDiscoveryResponse
	select {
	case r = <-c.p.received:
	default:
		return false
	}
	each := func(n *discoveryv3.ResourceName, do func(key string)) {
		for key, l := range c.wants {
			if l.GetName() == n.GetName() && meets(n.GetDynamicParameterConstraints(), l.GetDynamicParameters()) {
				do(key)
			}
		}
	}
	for _, resource := range r.GetResources() {
		each(resource.GetResourceName(), func(key string) {
			c.has[key] = summary(resourcev3.EndpointType, resource.GetResource().GetValue())
		})
	}
	for _, n := range r.GetRemovedResourceNames() {
		each(n, func(key string) { delete(c.has, key) })
	}
	c.p.send(ack(r))
	return true
}

// TestZoneClientsConverge plays histories to a client of variants. Rapid makes up and
// shrinks the histories.
func TestZoneClientsConverge(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{
				kind: rapid.IntRange(0, 11).Draw(r, "kind"), name: rapid.IntRange(0, 1).Draw(r, "name"),
				value: rapid.IntRange(0, 99).Draw(r, "value"),
			}
		}), 0, 60).Draw(r, "steps")
		problem := ""
		inBubble(t, zoned, func(_ *testing.T, b *bench) {
			w := &zoneWorld{b.server, map[string]int{}, map[health.EndpointID]health.Status{}, map[health.Locality]map[health.EndpointID]health.Status{}}
			c := &zoneClient{b: b, p: b.delta(), wants: map[string]*discoveryv3.ResourceLocator{}, has: map[string]string{}}
			for _, s := range steps {
				w.change(s)
				c.act(s)
				if s.value%2 == 0 {
					synctest.Wait()
				}
			}
			for c.deliver() {
			}
			want := map[string]string{}
			for key, l := range c.wants {
				if w.sizes[l.GetName()] > 0 {
					want[key] = w.summary(l)
				}
			}
			if !maps.Equal(c.has, want) {
				problem = fmt.Sprintf("the client has %q, the server %q", c.has, want)
			}
			c.p.cancel()
			synctest.Wait()
			if n := b.server.published.assignments.chosen.Load(); n != 0 {
				problem += fmt.Sprintf(" %d variants are left", n)
			}
		})
		if problem != "" {
			r.Error(problem)
		}
	})
}

// TestClientsOfAZoneConverge plays such histories to clients that give no parameter but
// are in a zone: by name and by wildcard, of both kinds.
func TestClientsOfAZoneConverge(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{
				kind: rapid.IntRange(0, 16).Draw(r, "kind"), name: rapid.IntRange(0, 1).Draw(r, "name"),
				value: rapid.IntRange(0, 99).Draw(r, "value"),
			}
		}), 0, 60).Draw(r, "steps")
		var problems []string
		inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(_ *testing.T, b *bench) {
			w := &zoneWorld{b.server, map[string]int{}, map[health.EndpointID]health.Status{}, map[health.Locality]map[health.EndpointID]health.Status{}}
			delta, state := newDeltaModel(b), newStateModel(b)
			delta.at, state.at = &corev3.Locality{Zone: "x"}, &corev3.Locality{Region: "eu", Zone: "y"}
			clients, in := map[string]model{"x": delta, "y": state}, map[string]string{"x": "", "y": "eu"}
			for _, s := range steps {
				if s.kind < 7 {
					w.change(s)
				} else if s.kind != 15 { // nothing is refused
					act(clients[string(rune('x'+s.value%2))], s, zoneNames[s.name%2])
				}
				if s.value%3 == 0 {
					synctest.Wait()
				}
			}
			for zone, c := range clients {
				catchUp(c)
				want := map[string]string{}
				for name := range w.sizes {
					if c.interested(name) {
						want[name] = w.summary(locator(name, "zone", zone, "region", in[zone]))
					}
				}
				if got := c.has(); !maps.Equal(got, want) {
					problems = append(problems, fmt.Sprintf("in zone %s the client has %q, the server %q", zone, got, want))
				}
				c.close()
			}
			synctest.Wait()
			if n := b.server.published.assignments.chosen.Load(); n != 0 {
				problems = append(problems, fmt.Sprintf("%d variants are left", n))
			}
		})
		for _, problem := range problems {
			r.Error(problem)
		}
	})
}
