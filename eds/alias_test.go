package eds

import (
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
	"hdsd/publish"
)

const (
	endpointAlias = "xdstp://hdsd/envoy.config.endpoint.v3.ClusterLoadAssignment/"
	clusterAlias  = "xdstp://hdsd/envoy.config.cluster.v3.Cluster/"
)

var aliased = Options{Authority: "hdsd"}

// TestAliasesByDelta: who asks by an alias gets the resource under it, and its changes.
func TestAliasesByDelta(t *testing.T) {
	inBubble(t, aliased, func(t *testing.T, b *bench) {
		b.publish("web", "a/b c", "db")
		b.server.Update(publish.Update{Clusters: clusters("web", "one")})
		p := b.delta()
		names := []string{endpointAlias + "web", endpointAlias + "a%2Fb%20c", endpointAlias + "a/b c", endpointAlias + "db?x=y", endpointAlias + "none", "web"}
		p.send(subscribe(resourcev3.EndpointType, names...))
		first := p.next()
		equal(t, "assignments", describe(first), "[-"+endpointAlias+"none web=HE "+
			endpointAlias+"a%2Fb%20c=HE "+endpointAlias+"a/b c=HE "+endpointAlias+"db?x=y=HE "+endpointAlias+"web=HE]")
		for _, r := range first.GetResources() {
			equal(t, "the name in the message", assignmentNameOf(r.GetResource().GetValue()), r.GetName())
		}
		p.send(ack(first))
		b.together(func() { b.server.setHealth(0, health.Unhealthy) })
		change := p.next()
		equal(t, "a change", describe(change), "[web=UN "+endpointAlias+"web=UN]")
		p.send(ack(change))
		p.send(subscribe(resourcev3.ClusterType, clusterAlias+"web"))
		got := p.next()
		equal(t, "the cluster", describe(got), "["+clusterAlias+"web=one]")
		c := new(clusterv3.Cluster)
		mustUnmarshal(got.GetResources()[0].GetResource().GetValue(), c)
		equal(t, "its name", c.GetName(), clusterAlias+"web")
		equal(t, "its assignment", c.GetEdsClusterConfig().GetServiceName(), endpointAlias+"web")
		if c.GetEdsClusterConfig().GetEdsConfig().GetAds() == nil {
			t.Errorf("its endpoints come from %v", c.GetEdsClusterConfig().GetEdsConfig())
		}
		p.send(ack(got))
		p.send(ack(p.next())) // the assignment again, since a new cluster waits for it
		b.together(func() {
			b.server.Update(publish.Update{RemovedAssignments: []string{"web"}, Assignments: []publish.Assignment{assignment("none", 9, 1)}})
		})
		gone := p.next()
		equal(t, "a removal, and one that comes", describe(gone), "[-web -"+endpointAlias+"web "+endpointAlias+"none=UN]")
		p.send(ack(gone))
		p.nothing()
	})
}

// TestAliasesOverAReconnect: nothing is sent that the client has.
func TestAliasesOverAReconnect(t *testing.T) {
	inBubble(t, aliased, func(t *testing.T, b *bench) {
		b.publish("web", "db")
		p := b.delta()
		names := []string{endpointAlias + "web", endpointAlias + "db"}
		p.send(subscribe(resourcev3.EndpointType, names...))
		had := versions(p.next())
		p.cancel()
		b.server.setHealth(1, health.Unhealthy)
		p = b.delta()
		again := subscribe(resourcev3.EndpointType, names...)
		again.InitialResourceVersions = had
		p.send(again)
		equal(t, "what changed", describe(p.next()), "["+endpointAlias+"db=UN]")
	})
}

// TestAliasesByStateOfTheWorld are as by delta.
func TestAliasesByStateOfTheWorld(t *testing.T) {
	inBubble(t, aliased, func(t *testing.T, b *bench) {
		b.publish("web", "db")
		b.server.Update(publish.Update{Clusters: clusters("web", "one", "db", "two")})
		p := b.state()
		p.send(want(resourcev3.ClusterType, clusterAlias+"web"))
		got := p.next()
		equal(t, "clusters", describeState(got), "["+clusterAlias+"web=one]")
		p.send(ackState(got, clusterAlias+"web"))
		names := []string{endpointAlias + "web", endpointAlias + "none"}
		p.send(want(resourcev3.EndpointType, names...))
		got = p.next()
		equal(t, "assignments", describeState(got), "["+endpointAlias+"none= "+endpointAlias+"web=HE]")
		p.send(ackState(got, names...))
		b.server.setHealth(0, health.Draining)
		got = p.next()
		equal(t, "a change", describeState(got), "["+endpointAlias+"web=DR]")
		p.send(ackState(got, names...))
		b.server.Update(publish.Update{RemovedClusters: []string{"web"}})
		equal(t, "no cluster", describeState(p.next()), "[]")
	})
}

// TestAliasesAreFetched, too.
func TestAliasesAreFetched(t *testing.T) {
	inBubble(t, aliased, func(t *testing.T, b *bench) {
		b.publish("web", "db")
		p := b.delta() // which makes the alias known
		p.send(subscribe(resourcev3.EndpointType, endpointAlias+"web"))
		p.next()
		for _, one := range []struct {
			names []string
			want  string
		}{
			{[]string{endpointAlias + "web", endpointAlias + "db", endpointAlias + "none"}, "[" + endpointAlias + "db=HE " + endpointAlias + "web=HE]"},
			{nil, "[db=HE web=HE]"},
		} {
			got, err := b.fetchEndpoints(&discoveryv3.DiscoveryRequest{Node: node("x"), ResourceNames: one.names})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "fetched", describeState(got), one.want)
		}
	})
}

// TestAliasesAreOnlyForWhoAsks: they are not in everything, another authority has none, a
// resource of that very name counts first, and nothing is kept for them.
func TestAliasesAreOnlyForWhoAsks(t *testing.T) {
	inBubble(t, aliased, func(t *testing.T, b *bench) {
		b.publish("web")
		asks := b.delta()
		asks.send(subscribe(resourcev3.EndpointType, endpointAlias+"web", "xdstp://other/envoy.config.endpoint.v3.ClusterLoadAssignment/web",
			clusterAlias+"web", endpointAlias, endpointAlias+endpointAlias+"web"))
		got := asks.next()
		equal(t, "by name", len(got.GetResources()), 1)
		equal(t, "not there", len(got.GetRemovedResources()), 4)
		asks.send(ack(got))
		all := b.delta()
		all.send(subscribe(resourcev3.EndpointType, "*"))
		everything := all.next()
		equal(t, "everything", describe(everything), "[web=HE]")
		all.send(ack(everything))
		own := assignment(endpointAlias+"web", 5, 2)
		b.server.Update(publish.Update{Assignments: []publish.Assignment{own}})
		equal(t, "its own name", describe(asks.next()), "["+endpointAlias+"web=UNUN]")
		equal(t, "for all", describe(all.next()), "["+endpointAlias+"web=UNUN]")
		b.server.Update(publish.Update{RemovedAssignments: []string{own.Name}})
		asks.send(ack(got))
		asks.cancel()
		all.cancel()
		synctest.Wait()
		b.server.Update(publish.Update{RemovedAssignments: []string{"web"}})
		if left := len(b.server.published.assignments.slots); left > 0 {
			t.Errorf("%d slots are left", left)
		}
	})
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("web")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, endpointAlias+"web"))
		equal(t, "without an authority", describe(p.next()), "[-"+endpointAlias+"web]")
	})
}

// TestAliasesHaveTheHealthOfAll where zones have their own.
func TestAliasesHaveTheHealthOfAll(t *testing.T) {
	inBubble(t, Options{Authority: "hdsd", ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		b.publish("web")
		b.server.SetZoneHealth(health.Locality{Zone: "a"}, []publish.Health{{ID: 0, Status: health.Unhealthy}}, nil)
		p := b.delta()
		asked := subscribe(resourcev3.EndpointType, endpointAlias+"web", "web")
		asked.Node = &corev3.Node{Id: "x", Locality: &corev3.Locality{Zone: "a"}}
		p.send(asked)
		equal(t, "both", describe(p.next()), "[web=UN "+endpointAlias+"web=HE]")
		got, err := b.fetchEndpoints(&discoveryv3.DiscoveryRequest{Node: asked.GetNode(), ResourceNames: []string{endpointAlias + "web"}})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "fetched", describeState(got), "["+endpointAlias+"web=HE]")
	})
}
