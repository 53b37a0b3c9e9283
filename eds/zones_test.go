package eds

import (
	"fmt"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
	"hdsd/publish"
)

// TestWildcardsGetTheHealthOfTheirZone as subscriptions by name do.
func TestWildcardsGetTheHealthOfTheirZone(t *testing.T) {
	for name, names := range map[string][]string{"legacy": nil, "explicit": {"*"}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
				b.publishPairs("a", "b")
				b.server.SetZoneHealth(zoneNamed("x"), down(0, 5), nil)
				var peers []*deltaPeer
				says := func(what string, want ...string) {
					t.Helper()
					for i, p := range peers {
						got := "[]"
						for synctest.Wait(); len(p.received) > 0; synctest.Wait() {
							r := p.next()
							got = describe(r)
							p.send(ack(r))
						}
						equal(t, fmt.Sprint(what, ", peer ", i), got, want[i])
					}
				}
				for _, zone := range []string{"x", "x", "y", ""} {
					m := subscribe(resourcev3.EndpointType, names...)
					m.Node.Locality = &corev3.Locality{Zone: zone}
					peers = append(peers, b.delta())
					peers[len(peers)-1].send(m)
				}
				says("first", "[a=UNHE b=HEHE]", "[a=UNHE b=HEHE]", "[a=HEHE b=HEHE]", "[a=HEHE b=HEHE]")
				b.together(func() { b.server.SetZoneHealth(zoneNamed("x"), down(3), []health.EndpointID{0}) })
				says("others of the zone", "[a=HEHE b=HEUN]", "[a=HEHE b=HEUN]", "[]", "[]")
				b.server.setHealth(2, health.Timeout)
				says("of all zones", "[b=TIUN]", "[b=TIUN]", "[b=TIHE]", "[b=TIHE]")
				b.server.setHealth(5, health.Healthy)
				b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("c", 4, 2)}})
				says("a new one", "[c=UNUN]", "[c=UNUN]", "[c=UNHE]", "[c=UNHE]")
				b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("c", 5, 1)}})
				says("other endpoints", "[c=UN]", "[c=UN]", "[c=HE]", "[c=HE]")
				b.server.Update(publish.Update{RemovedAssignments: []string{"c"}})
				says("gone", "[-c]", "[-c]", "[-c]", "[-c]")
				for _, p := range peers {
					p.cancel()
				}
				synctest.Wait()
				equal(t, "variants", b.server.published.assignments.chosen.Load(), int64(0))
				equal(t, "slots", len(b.server.published.assignments.slots), 2)
			})
		})
	}
}

func TestStateWildcardOfAZone(t *testing.T) {
	inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		b.publishPairs("a", "b")
		b.server.SetZoneHealth(zoneNamed("x"), down(0), nil)
		p := b.state()
		m := want(resourcev3.EndpointType)
		m.Node.Locality = &corev3.Locality{Zone: "x"}
		p.send(m)
		r := p.next()
		equal(t, "everything", describeState(r), "[a=UNHE b=HEHE]")
		p.send(ackState(r))
		b.server.SetZoneHealth(zoneNamed("x"), nil, []health.EndpointID{0})
		r = p.next()
		equal(t, "changed", describeState(r), "[a=HEHE]")
		p.send(ackState(r, "b"))
		equal(t, "by name", describeState(p.next()), "[b=HEHE]")
		equal(t, "variants", b.server.published.assignments.chosen.Load(), int64(1))
		p.cancel()
	})
}

// TestFetchOfEverythingInAZone returns the health that the zone sees itself, and verdicts
// for the rest.
func TestFetchOfEverythingInAZone(t *testing.T) {
	inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		b.publishPairs("a", "b")
		versions := map[string]string{}
		gets := func(zone, want string) {
			t.Helper()
			m := &discoveryv3.DiscoveryRequest{Node: &corev3.Node{Locality: &corev3.Locality{Zone: zone}}}
			r, err := b.fetchEndpoints(m)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "in "+zone, describeState(r), want)
			versions[zone] = r.GetVersionInfo()
		}
		gets("x", "[a=HEHE b=HEHE]")
		gets("y", "[a=HEHE b=HEHE]")
		equal(t, "versions", versions["x"], versions["y"])
		b.server.SetZoneHealth(zoneNamed("x"), down(2, 7), nil)
		gets("x", "[a=HEHE b=UNHE]")
		gets("y", "[a=HEHE b=HEHE]")
		if versions["x"] == versions["y"] {
			t.Error("different content has one version")
		}
		equal(t, "nothing is kept", b.server.published.assignments.chosen.Load(), int64(0))
	})
}

// TestRegionsTellZonesApart: with a region, a zone is one zone; without, all zones of the
// name. No locator meets the constraints of two variants.
func TestRegionsTellZonesApart(t *testing.T) {
	inBubble(t, zoned, func(t *testing.T, b *bench) {
		b.publishPairs("a")
		for zone, all := range map[string][]publish.Health{"x": down(0, 1), "eu/x": down(0), "us/x": down(1)} {
			b.server.SetZoneHealth(zoneNamed(zone), all, nil)
		}
		asked := map[string]*discoveryv3.ResourceLocator{
			"x": locator("a", "zone", "x"), "x in eu": locator("a", "zone", "x", "region", "eu"), "x in us": locator("a", "region", "us", "zone", "x"),
			"x elsewhere": locator("a", "zone", "x", "region", "none"), "x in no region": locator("a", "zone", "x", "region", ""),
			"eu": locator("a", "region", "eu"), "y": locator("a", "zone", "y"),
		}
		p := b.delta()
		var all []*discoveryv3.ResourceLocator
		for _, l := range asked {
			all = append(all, l)
		}
		p.send(locate(all...))
		got := map[string]string{}
		for _, resource := range p.next().GetResources() {
			for what, l := range asked {
				if meets(resource.GetResourceName().GetDynamicParameterConstraints(), l.GetDynamicParameters()) {
					got[what] += summary(resourcev3.EndpointType, resource.GetResource().GetValue())
				}
			}
		}
		equal(t, "variants", fmt.Sprint(got), fmt.Sprint(map[string]string{
			"x": "UNUN", "x in eu": "UNHE", "x in us": "HEUN", "x elsewhere": "HEHE", "x in no region": "UNUN", "eu": "HEHE", "y": "HEHE",
		}))
		p.cancel()
	})
}

// TestNodesAreInTheZoneOfTheirRegion: by name, by wildcard and in a fetch.
func TestNodesAreInTheZoneOfTheirRegion(t *testing.T) {
	inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		b.publishPairs("a")
		b.server.SetZoneHealth(zoneNamed("x"), down(0, 1), nil)
		b.server.SetZoneHealth(zoneNamed("eu/x"), down(0), nil)
		for at, want := range map[string]string{"x": "[a=UNUN]", "eu/x": "[a=UNHE]", "us/x": "[a=HEHE]", "eu/": "[a=HEHE]"} {
			n := node("dp")
			n.Locality = &corev3.Locality{Region: zoneNamed(at).Region, Zone: zoneNamed(at).Zone, SubZone: "rack"}
			for how, names := range map[string][]string{"by name": {"a"}, "by wildcard": {"*"}} {
				p := b.delta()
				m := subscribe(resourcev3.EndpointType, names...)
				m.Node = n
				p.send(m)
				equal(t, at+" "+how, describe(p.next()), want)
				p.cancel()
				r, err := b.fetchEndpoints(&discoveryv3.DiscoveryRequest{Node: n, ResourceNames: names})
				if err != nil {
					t.Fatal(err)
				}
				equal(t, at+" fetched "+how, describeState(r), want)
			}
		}
	})
}

func TestNodesGetTheHealthOfTheirZone(t *testing.T) {
	for name, o := range map[string]Options{"on": {ZoneByLocality: true}, "off": {ZoneVariants: true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, b *bench) {
				b.publishPairs("a", "b")
				b.server.SetZoneHealth(zoneNamed("zone-of-dp"), down(0), nil)
				p := b.delta()
				m := subscribe(resourcev3.EndpointType, "a", "b")
				m.Node.Locality = messageOf(assignment("", 0, 1)).GetEndpoints()[0].GetLocality()
				m.Node.Locality.Zone = "zone-of-dp"
				p.send(m)
				r := p.next()
				first, fetched := "[a=UNHE b=HEHE]", "[a=UNHE]"
				if !o.ZoneByLocality {
					first, fetched = "[a=HEHE b=HEHE]", "[a=HEHE]"
				}
				equal(t, "by name", describe(r), first)
				p.send(ack(r))
				s, err := b.fetchEndpoints(&discoveryv3.DiscoveryRequest{Node: m.GetNode(), ResourceNames: []string{"a"}})
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "fetched", describeState(s), fetched)
				b.server.Update(publish.Update{RemovedAssignments: []string{"a"}})
				equal(t, "removed", describe(p.next()), "[-a]")
				p.cancel()
			})
		})
	}
}

func TestZonesUnderAWildcard(t *testing.T) {
	inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		b.publishPairs("a", "b")
		b.server.SetZoneHealth(zoneNamed("x"), down(0), nil)
		p := b.delta()
		m := subscribe(resourcev3.EndpointType, "*")
		m.Node.Locality = messageOf(assignment("", 0, 1)).GetEndpoints()[0].GetLocality()
		m.Node.Locality.Zone = "x"
		m.ResourceLocatorsSubscribe = []*discoveryv3.ResourceLocator{locator("a", "zone", "x")}
		p.send(m)
		r := p.next()
		x := locator("a", "zone", "x")
		equal(t, "everything", variantsIn(t, r, x), "a=UNHE a{x}=UNHE b=HEHE")
		p.send(ack(r))
		p.send(subscribe(resourcev3.EndpointType, "b"))
		p.send(ack(p.next()))
		p.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceLocatorsUnsubscribe: []*discoveryv3.ResourceLocator{x}})
		p.send(unsubscribe(resourcev3.EndpointType, "b"))
		r = p.next()
		equal(t, "how it stands", variantsIn(t, r), "b=HEHE")
		p.send(ack(r))
		b.server.Update(publish.Update{RemovedAssignments: []string{"a", "b"}})
		nextAll(p, "[-a -b]")
		p.cancel()
		synctest.Wait()
		equal(t, "variants", b.server.published.assignments.chosen.Load(), int64(0))
	})
}
