package eds

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
	"hdsd/publish"
)

var kept = Options{TTL: map[string]time.Duration{resourcev3.EndpointType: 30 * time.Second, resourcev3.ClusterType: 1500 * time.Millisecond}}

// subscribeWithTTL subscribes by delta as a client that understands ttl.
func subscribeWithTTL(typeURL string, names ...string) *discoveryv3.DeltaDiscoveryRequest {
	m := subscribe(typeURL, names...)
	m.Node.ClientFeatures = []string{"other", "xds.config.supports-resource-ttl"}
	return m
}

// lives describes each resource: its ttl, and whether it has a body.
func lives(r *discoveryv3.DeltaDiscoveryResponse) string {
	var all []string
	for _, resource := range r.GetResources() {
		ttl := "for ever"
		if resource.GetTtl() != nil {
			ttl = resource.GetTtl().AsDuration().String()
		}
		body := "body"
		if resource.GetResource() == nil {
			body = "beat"
		}
		all = append(all, fmt.Sprint(resource.GetName(), " ", ttl, " ", body))
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

func TestDeltaHeartbeatsKeepWhatTheClientHas(t *testing.T) {
	inBubble(t, kept, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p, plain := b.delta(), b.delta()
		p.send(subscribeWithTTL(resourcev3.EndpointType, "a", "b", "none"))
		plain.send(subscribe(resourcev3.EndpointType, "a", "b"))
		r := plain.next()
		equal(t, "to a client that does not heed it", lives(r), "[a for ever body b for ever body]")
		plain.send(ack(r))
		r = p.next()
		equal(t, "first", lives(r), "[a 30s body b 30s body]")
		first := versions(r)
		time.Sleep(25 * time.Second)
		p.nothing() // it has not answered: nobody knows what it has
		p.send(ack(r))
		for range 3 {
			r = p.next()
			equal(t, "heartbeat", lives(r), "[a 30s beat b 30s beat]")
			equal(t, "versions", fmt.Sprint(versions(r)), fmt.Sprint(first))
			if r.GetNonce() == "" || r.GetTypeUrl() != resourcev3.EndpointType || len(r.GetRemovedResources()) > 0 {
				t.Errorf("heartbeat %v", r)
			}
			p.send(ack(r))
			p.nothing()
			time.Sleep(10 * time.Second)
		}
		p.send(ack(p.next()))

		b.server.setHealth(0, health.Unhealthy)
		r = p.next()
		equal(t, "changed", lives(r), "[a 30s body]")
		p.send(nack(r, "no"))
		time.Sleep(10 * time.Second)
		r = p.next()
		equal(t, "of what was refused, what it has", fmt.Sprint(lives(r), versions(r)["a"] == first["a"]), "[a 30s beat b 30s beat]true")
		p.send(ack(r))
		b.server.setHealth(0, health.Degraded)
		r = p.next()
		p.send(nack(r, "no, too"))
		time.Sleep(10 * time.Second)
		r = p.next()
		equal(t, "refused twice", fmt.Sprint(lives(r), versions(r)["a"] == first["a"]), "[a 30s beat b 30s beat]true")
		p.send(ack(r))

		b.server.Update(publish.Update{RemovedAssignments: []string{"b"}})
		p.send(ack(p.next()))
		p.send(unsubscribe(resourcev3.EndpointType, "a"))
		time.Sleep(time.Minute)
		p.nothing()
		r = plain.next()
		equal(t, "changed, to the other", lives(r), "[a for ever body]")
		p.cancel()
		plain.cancel()
		time.Sleep(time.Minute) // no timer is left
	})
}

func TestDeltaHeartbeatLeavesOutWhatWasNeverAccepted(t *testing.T) {
	inBubble(t, kept, func(t *testing.T, b *bench) {
		b.publish("a")
		p := b.delta()
		p.send(subscribeWithTTL(resourcev3.EndpointType, "a"))
		p.send(nack(p.next(), "no"))
		time.Sleep(time.Minute)
		p.nothing()
		p.cancel()
	})
}

func TestDeltaHeartbeatAtOnceAfterReconnect(t *testing.T) {
	inBubble(t, kept, func(t *testing.T, b *bench) {
		b.publish("a", "b", "c")
		p := b.delta()
		p.send(subscribeWithTTL(resourcev3.EndpointType, "*"))
		had := versions(p.next())
		p.cancel()
		had["b"], had["c"] = "0000000000000001", "foreign"
		again := b.delta()
		m := subscribeWithTTL(resourcev3.EndpointType, "a", "b", "c")
		m.InitialResourceVersions = had
		again.send(m)
		r := again.next()
		equal(t, "what changed", lives(r), "[b 30s body c 30s body]")
		again.send(ack(r))
		r = again.next()
		equal(t, "what did not, and may expire any moment", lives(r), "[a 30s beat b 30s beat c 30s beat]")
		again.send(ack(r))
		again.nothing()
		again.cancel()
	})
}

func TestLosingTheTTLSendsEverythingAgain(t *testing.T) {
	inBubble(t, kept, func(t *testing.T, b *bench) {
		b.publish("a")
		connect := func(had map[string]string) (*deltaPeer, map[string]string) {
			p := b.delta()
			m := subscribeWithTTL(resourcev3.EndpointType, "a")
			m.InitialResourceVersions = had
			p.send(m)
			r := p.next()
			for c := range b.server.Subscribers() {
				equal(t, "shown", c.Resources()[0].Version, r.GetResources()[0].GetVersion())
			}
			p.send(ack(r))
			p.nothing()
			p.cancel()
			synctest.Wait()
			return p, versions(r)
		}
		_, had := connect(nil)
		b.server.published.assignments.ttl = 0 // as after a restart
		_, now := connect(had)
		if had["a"] == now["a"] {
			t.Error("the version is the same")
		}
		p := b.delta()
		m := subscribeWithTTL(resourcev3.EndpointType, "a")
		m.InitialResourceVersions = now
		p.send(m)
		p.nothing()
		p.cancel()
	})
}

func TestLargeHeartbeatsAreSplit(t *testing.T) {
	o := kept
	o.MaxResponseBytes = 500
	inBubble(t, o, func(t *testing.T, b *bench) {
		names := manyNames(40)
		b.publish(names...)
		p := b.delta()
		p.send(subscribeWithTTL(resourcev3.EndpointType, names...))
		for got := 0; got < 40; {
			r := p.next()
			got += len(r.GetResources())
			p.send(ack(r))
		}
		p.nothing()
		time.Sleep(10 * time.Second)
		got := map[string]string{}
		for responses := 0; len(got) < 40; responses++ {
			r := p.next()
			if len(r.GetResources()) > 15 {
				t.Errorf("%d in one", len(r.GetResources()))
			}
			maps.Copy(got, versions(r))
			p.nothing() // before the ACK
			p.send(ack(r))
		}
		p.nothing()
		p.cancel()
	})
}

// unwrapped returns the content of a state-of-the-world response of wrapped resources.
func unwrapped(t *testing.T, r *discoveryv3.DiscoveryResponse) *discoveryv3.DeltaDiscoveryResponse {
	t.Helper()
	all := new(discoveryv3.DeltaDiscoveryResponse)
	for _, any := range r.GetResources() {
		resource := new(discoveryv3.Resource)
		if err := any.UnmarshalTo(resource); err != nil {
			t.Fatal(err)
		}
		all.Resources = append(all.Resources, resource)
	}
	return all
}

func TestStateResourcesAreWrappedAndSentAgainBeforeTheyExpire(t *testing.T) {
	for name, features := range map[string][]string{
		"one spelling": {"xds.config.supports-resource-ttl", "xds.config.resource-in-sotw"},
		"the other":    {"xds.config.supports-resource-ttl", "xds.config.supports-resource-in-sotw"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, kept, func(t *testing.T, b *bench) {
				b.publish("a", "b")
				b.server.Update(publish.Update{Clusters: clusters("a", "1", "b", "1")})
				p := b.state()
				m := want(resourcev3.EndpointType, "a", "b")
				m.Node.ClientFeatures = features
				p.send(m)
				first := p.next()
				equal(t, "first", lives(unwrapped(t, first)), "[a 30s body b 30s body]")
				equal(t, "said", describe(unwrapped(t, first)), "[a=HE b=HE]")
				p.send(ackState(first, "a", "b"))
				time.Sleep(10 * time.Second)
				again := p.next()
				equal(t, "again", describe(unwrapped(t, again)), "[a=HE b=HE]")
				equal(t, "version", again.GetVersionInfo(), first.GetVersionInfo())
				p.send(ackState(again, "a", "b"))
				b.server.setHealth(0, health.Unhealthy)
				p.send(nackState(p.next(), "no", "a", "b"))
				time.Sleep(10 * time.Second)
				again = p.next()
				equal(t, "but for what was refused", describe(unwrapped(t, again)), "[b=HE]")
				p.send(ackState(again, "a", "b"))

				p.send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.ClusterType})
				first = p.next()
				equal(t, "clusters", lives(unwrapped(t, first)), "[a 1.5s body b 1.5s body]")
				p.send(ackState(first))
				p.send(ackState(p.next(), "a", "b")) // the assignments, which new clusters wait for
				time.Sleep(500 * time.Millisecond)
				again = p.next()
				equal(t, "whole", describe(unwrapped(t, again)), "[a=1 b=1]")
				p.cancel()
			})
		})
	}
}

func TestStateWithoutBothFeaturesIsNotWrapped(t *testing.T) {
	for _, feature := range []string{"xds.config.supports-resource-ttl", "xds.config.resource-in-sotw"} {
		inBubble(t, kept, func(t *testing.T, b *bench) {
			b.publish("a")
			p := b.state()
			m := want(resourcev3.EndpointType, "a")
			m.Node.ClientFeatures = []string{feature}
			p.send(m)
			r := p.next()
			equal(t, "type", r.GetResources()[0].GetTypeUrl(), resourcev3.EndpointType)
			p.send(ackState(r, "a"))
			time.Sleep(time.Minute)
			p.nothing()
			p.cancel()
		})
	}
}

// TestEnvoyUnderstandsTTLWithoutSayingSo, except for assignments by state of the world.
func TestEnvoyUnderstandsTTLWithoutSayingSo(t *testing.T) {
	inBubble(t, kept, func(t *testing.T, b *bench) {
		b.publish("a")
		b.server.Update(publish.Update{Clusters: clusters("a", "1")})
		p, d := b.state(), b.delta()
		m := want(resourcev3.ClusterType)
		m.Node.UserAgentName = "envoy"
		p.send(m)
		equal(t, "clusters", lives(unwrapped(t, p.next())), "[a 1.5s body]")
		p.send(want(resourcev3.EndpointType, "a"))
		equal(t, "assignments", p.next().GetResources()[0].GetTypeUrl(), resourcev3.EndpointType)
		n := subscribe(resourcev3.EndpointType, "a")
		n.Node.UserAgentName = "envoy"
		d.send(n)
		equal(t, "delta", lives(d.next()), "[a 30s body]")
		p.cancel()
		d.cancel()
	})
}
