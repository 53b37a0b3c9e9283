package eds

import (
	"fmt"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/health"
	"hdsd/publish"
)

// localities describes an assignment's localities, as "a*2:HEUN": zone, weight, health.
func localities(value []byte) (text string) {
	a := new(endpointv3.ClusterLoadAssignment)
	mustUnmarshal(value, a)
	for _, group := range a.GetEndpoints() {
		text += " "
		if group.GetLocality() != nil {
			text += fmt.Sprintf("%q", group.GetLocality().GetZone())
		}
		if group.GetLoadBalancingWeight() != nil {
			text += fmt.Sprint("*", group.GetLoadBalancingWeight().GetValue())
		}
		text += ":"
		for _, e := range group.GetLbEndpoints() {
			text += e.GetHealthStatus().String()[:2]
		}
	}
	return text
}

// inLocalities makes an assignment whose endpoints are in these localities, 0, 1, 2, … in each.
func inLocalities(name string, all ...*endpointv3.LocalityLbEndpoints) publish.Assignment {
	a, next := publish.Assignment{Name: name}, uint32(0)
	for i, group := range all {
		var ids [][]health.EndpointID
		for range i {
			group.LbEndpoints = append(group.LbEndpoints, lbEndpoint(next))
			ids = append(ids, []health.EndpointID{health.EndpointID(next)})
			next++
		}
		a.IDs = append(a.IDs, ids)
	}
	a.Wire = wireOf(&endpointv3.ClusterLoadAssignment{
		ClusterName: name, Endpoints: all, Policy: &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(140)},
	})
	return a
}

func wantAs(agent string, names ...string) *discoveryv3.DiscoveryRequest {
	m := want(resourcev3.EndpointType, names...)
	m.Node.UserAgentName = agent
	return m
}

// TestGRPCGetsLocalitiesThatItTakes: each has a name, and a weight where none has one. What other
// clients get stays as the source has it. Health is in both.
func TestGRPCGetsLocalitiesThatItTakes(t *testing.T) {
	inBubble(t, Options{Authority: "hdsd"}, func(t *testing.T, b *bench) {
		zone := func(name string) *endpointv3.LocalityLbEndpoints {
			return &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: name}}
		}
		weighted := zone("d")
		weighted.LoadBalancingWeight = wrapperspb.UInt32(7)
		plain := func() *publish.Update {
			return &publish.Update{Assignments: []publish.Assignment{
				inLocalities("a", zone("x"), new(endpointv3.LocalityLbEndpoints), zone("y")), inLocalities("b", zone("c"), weighted),
			}}
		}
		b.server.Update(*plain())
		names := []string{"a", "b", "xdstp://hdsd/envoy.config.endpoint.v3.ClusterLoadAssignment/a"}
		envoy, client, other := b.state(), b.state(), b.delta()
		envoy.send(wantAs("envoy", names...))
		client.send(wantAs("gRPC Go", names...))
		m := subscribe(resourcev3.EndpointType, "a")
		m.Node.UserAgentName = "gRPC C-core"
		other.send(m)
		inDelta := other.next()
		other.send(ack(inDelta))
		gets := func(p *statePeer, want map[string]string) (last *discoveryv3.DiscoveryResponse) {
			t.Helper()
			for got := 0; got < len(want); got += len(last.GetResources()) { // two names of one assignment may come one after the other
				last = p.next()
				for _, each := range last.GetResources() {
					equal(t, assignmentNameOf(each.GetValue()), localities(each.GetValue()), want[assignmentNameOf(each.GetValue())])
				}
				p.send(ackState(last, names...))
			}
			return last
		}
		asIs, completed := ` "x": :UN "y":UNUN`, ` "x"*1: ""*1:UN "y"*2:UNUN`
		all := func(a, b string) map[string]string {
			return map[string]string{names[0]: a, names[1]: b, names[2]: a}
		}
		gets(envoy, all(asIs, ` "c": "d"*7:UN`))
		gets(client, all(completed, ` "c": "d"*7:UN`))
		equal(t, "delta", localities(inDelta.GetResources()[0].GetResource().GetValue()), completed)

		b.server.setHealth(2, health.Unhealthy)
		a := func(text string) map[string]string { return map[string]string{names[0]: text, names[2]: text} }
		gets(envoy, a(` "x": :UN "y":UNUN`))
		gets(client, a(` "x"*1: ""*1:UN "y"*2:UNUN`))
		inDelta = other.next()
		other.send(ack(inDelta))
		b.server.setHealth(2, health.Healthy)
		gets(envoy, a(` "x": :UN "y":UNHE`))
		gets(client, a(` "x"*1: ""*1:UN "y"*2:UNHE`))
		inDelta = other.next()
		other.send(ack(inDelta))
		equal(t, "delta after a flip", localities(inDelta.GetResources()[0].GetResource().GetValue()), ` "x"*1: ""*1:UN "y"*2:UNHE`)
		synctest.Wait()
		for _, each := range b.server.Clients(nil) {
			equal(t, "synced", each.Synced, each.Resources)
		}

		again := b.delta() // with what it has from an earlier stream
		m = subscribe(resourcev3.EndpointType, "a")
		m.Node.UserAgentName, m.InitialResourceVersions = "gRPC C-core", versions(inDelta)
		again.send(m)
		again.nothing()
		for _, p := range []*statePeer{envoy, client} {
			p.cancel()
		}
		other.cancel()
		again.cancel()
	})
}

// TestGRPCSharesWhatItGets: the assignment is completed once for all gRPC clients, and not before
// one asks.
func TestGRPCSharesWhatItGets(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		content := func() *resource { return b.server.published.assignments.slots["a"].resource }
		envoy := b.state()
		envoy.send(wantAs("envoy", "a"))
		envoy.send(ackState(envoy.next(), "a"))
		equal(t, "made for Envoy", content().forGRPC == nil, true)
		one, other := b.state(), b.state()
		one.send(wantAs("gRPC Go", "a"))
		one.send(ackState(one.next(), "a"))
		made := content().forGRPC
		other.send(wantAs("gRPC Java", "a"))
		other.send(ackState(other.next(), "a"))
		b.server.setHealth(0, health.Unhealthy)
		one.next()
		other.next()
		equal(t, "made once", content().forGRPC == made && made != nil, true)
		envoy.cancel()
		one.cancel()
		other.cancel()
	})
}

// TestARefusalOfSomeResources: gRPC's clients for C++ and Node.js take the others of a response.
func TestARefusalOfSomeResources(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b", "c")
		b.server.Update(publish.Update{Clusters: clusters("a", "1", "b", "1", "c", "1")})
		p := b.state()
		says := func(typeURL string, r *discoveryv3.DiscoveryResponse, text string, synced, refused int) {
			t.Helper()
			p.send(nackState(r, text, "a", "b", "c", "none"))
			p.nothing()
			for _, c := range b.server.Clients(nil) {
				if c.TypeURL == typeURL {
					equal(t, "synced "+text, c.Synced, synced)
					equal(t, "refused "+text, c.Error, refused)
				}
			}
		}
		p.send(want(resourcev3.ClusterType, "a", "b", "c", "none"))
		says(resourcev3.ClusterType, p.next(), "xDS response validation errors: [resource index 0: Cluster message validation failed: [x]; resource index 2: y]", 2, 2)
		p.send(want(resourcev3.EndpointType, "a", "b", "c", "none"))
		r := p.next()
		equal(t, "resources", describeState(r), "[a=HE b=HE c=HE none=]")
		says(resourcev3.EndpointType, r, "xDS response validation errors: [resource index 1: ClusterLoadAssignment message validation failed: [x]]", 3, 1)
		b.server.setHealth(0, health.Unhealthy)
		says(resourcev3.EndpointType, p.next(), "xDS response validation errors: [resource index 0: x]", 2, 2)
		b.server.setHealth(0, health.Healthy)
		says(resourcev3.EndpointType, p.next(), "no resource index 1: is named", 2, 2)
		p.cancel()
	})
}
