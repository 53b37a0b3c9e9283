package eds

import (
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"hdsd/health"
	"hdsd/publish"
)

func TestDeltaSendsSubscribedResourcesAndTheirChanges(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b", "c")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a", "b"))
		r := p.next()
		equal(t, "first", describe(r), "[a=HE b=HE]")
		equal(t, "identifier", r.GetControlPlane().GetIdentifier(), "hdsd-test")
		equal(t, "type", r.GetTypeUrl(), resourcev3.EndpointType)
		if r.GetSystemVersionInfo() == "" || r.GetNonce() == "" {
			t.Errorf("no version or nonce: %v", r)
		}
		p.send(ack(r))
		p.nothing()
		b.server.setHealth(1, health.Timeout)
		b.server.setHealth(2, health.Timeout)
		equal(t, "change", describe(p.next()), "[b=TI]")
		p.cancel()
	})
}

func TestDeltaAnswersMissingNamesAsRemoved(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "later"))
		r := p.next()
		equal(t, "missing", describe(r), "[-later]")
		p.send(ack(r))
		b.publish("later")
		r = p.next()
		equal(t, "there", describe(r), "[later=HE]")
		p.send(ack(r))
		p.nothing()
		b.server.Update(publish.Update{RemovedAssignments: []string{"later"}})
		equal(t, "removed", describe(p.next()), "[-later]")
		p.cancel()
	})
}

func TestDeltaRefusedIsParkedUntilThatResourceChanges(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a", "b"))
		p.send(nack(p.next(), "no such zone"))
		p.nothing()
		c := b.server.Clients(nil)[0]
		equal(t, "errors", c.Error, 2)
		equal(t, "last error", c.LastError, "no such zone")

		b.server.setHealth(0, health.Unhealthy)
		r := p.next()
		equal(t, "only what changed", describe(r), "[a=UN]")
		p.send(ack(r))
		p.nothing()
		c = b.server.Clients(nil)[0]
		equal(t, "errors", c.Error, 1)
		equal(t, "synced", c.Synced, 1)
		only := b.server.Clients(func(name string) bool { return name == "b" })
		equal(t, "clients that asked for b", len(only), 1)
		equal(t, "what they have of b", [3]int{only[0].Resources, only[0].Error, only[0].Synced}, [3]int{1, 1, 0})
		equal(t, "clients that asked for c", len(b.server.Clients(func(name string) bool { return name == "c" })), 0)
		p.cancel()
	})
}

func TestDeltaSendsTheLatestToASlowClient(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a", "b"))
		r := p.next()
		for range 50 {
			b.server.setHealth(0, health.Unhealthy)
			b.server.setHealth(1, health.Unhealthy)
			b.server.setHealth(1, health.Healthy)
			b.server.setHealth(0, health.Degraded)
		}
		p.nothing()
		equal(t, "stale", b.server.Clients(nil)[0].Stale, 2)
		p.send(ack(r))
		r = p.next()
		equal(t, "latest, and nothing of what went back", describe(r), "[a=DE]")
		p.send(ack(r))
		p.nothing()
		equal(t, "synced", b.server.Clients(nil)[0].Synced, 2)
		p.cancel()
	})
}

func TestDeltaStaleNonceIsNoAckButItsSubscriptionsCount(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a"))
		first := p.next()
		p.send(ack(first))
		p.nothing()
		b.server.setHealth(0, health.Unhealthy)
		second := p.next()
		stale := ack(first)
		stale.ResourceNamesSubscribe = []string{"b"}
		p.send(stale)
		p.nothing() // the second is still outstanding
		p.send(ack(second))
		equal(t, "subscribed by the stale request", describe(p.next()), "[b=HE]")
		p.cancel()
	})
}

func TestDeltaResubscribingSendsAgain(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a", "gone"))
		p.send(ack(p.next()))
		p.nothing()
		p.send(subscribe(resourcev3.EndpointType, "a", "gone"))
		equal(t, "again", describe(p.next()), "[-gone a=HE]")
		p.cancel()
	})
}

func TestDeltaUnsubscribedIsSilent(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a", "b", "none"))
		p.send(ack(p.next()))
		p.send(unsubscribe(resourcev3.EndpointType, "a", "none", "never"))
		p.nothing()
		b.server.setHealth(0, health.Unhealthy)
		p.nothing()
		equal(t, "resources", b.server.Clients(nil)[0].Resources, 1)
		b.server.setHealth(1, health.Unhealthy)
		equal(t, "what stayed", describe(p.next()), "[b=UN]")
		equal(t, "slots", len(b.server.published.assignments.slots), 2)
		p.cancel()
	})
}

func TestDeltaReconnectSendsOnlyTheDifference(t *testing.T) {
	for _, wildcard := range []bool{false, true} {
		inBubble(t, Options{}, func(t *testing.T, b *bench) {
			b.publish("a", "b", "c")
			names := []string{"a", "b", "c", "gone", "foreign"}
			p := b.delta()
			p.send(subscribe(resourcev3.EndpointType, "*"))
			had := versions(p.next())
			p.cancel()
			b.server.setHealth(1, health.Unhealthy)
			had["gone"] = "00000000000000ff"
			had["foreign"] = "v17"

			again := b.delta()
			m := subscribe(resourcev3.EndpointType, names...)
			if wildcard {
				m.ResourceNamesSubscribe = nil
			}
			m.InitialResourceVersions = had
			again.send(m)
			r := again.next()
			equal(t, "difference", describe(r), "[-foreign -gone b=UN]")
			again.send(ack(r))
			again.nothing()
			c := b.server.Clients(nil)[0]
			want := 5
			if wildcard {
				want = 3
			}
			equal(t, "resources", c.Resources, want)
			equal(t, "synced", c.Synced, want)
			again.cancel()
		})
	}
}

func TestDeltaReconnectWithEverythingGetsNothing(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType))
		had := versions(p.next())
		p.cancel()
		again := b.delta()
		m := subscribe(resourcev3.EndpointType, "a", "b")
		m.InitialResourceVersions = had
		again.send(m)
		again.nothing()
		again.cancel()
	})
}

func TestDeltaWildcards(t *testing.T) {
	for name, first := range map[string][]string{"legacy": nil, "explicit": {"*"}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, b *bench) {
				p := b.delta()
				p.send(subscribe(resourcev3.EndpointType, first...))
				r := p.next()
				equal(t, "an answer though there is nothing", describe(r), "[]")
				p.send(ack(r))
				b.publish("a", "b")
				p.send(ack(nextAll(p, "[a=HE b=HE]")))
				p.send(subscribe(resourcev3.EndpointType, "a"))
				r = p.next()
				equal(t, "named too", describe(r), "[a=HE]")
				p.send(ack(r))
				p.nothing()
				b.server.setHealth(1, health.Unhealthy)
				r = p.next()
				equal(t, "still everything", describe(r), "[b=UN]")
				p.send(ack(r))
				p.send(unsubscribe(resourcev3.EndpointType, "*"))
				p.nothing()
				b.server.setHealth(1, health.Healthy)
				p.nothing()
				b.server.setHealth(0, health.Unhealthy)
				r = p.next()
				equal(t, "what is named", describe(r), "[a=UN]")
				p.send(ack(r))
				p.send(unsubscribe(resourcev3.EndpointType, "a"))
				p.nothing()
				b.server.setHealth(0, health.Healthy)
				p.nothing()
				equal(t, "resources", b.server.Clients(nil)[0].Resources, 0)
				p.cancel()
			})
		})
	}
}

// nextAll takes responses until they hold together what is wanted. It acknowledges all
// but the last.
func nextAll(p *deltaPeer, want string) *discoveryv3.DeltaDiscoveryResponse {
	p.b.t.Helper()
	all := new(discoveryv3.DeltaDiscoveryResponse)
	for {
		r := p.next()
		proto.Merge(all, proto.CloneOf(r))
		if describe(all) == want {
			return r
		}
		if len(all.GetResources()) > 100 {
			p.b.t.Fatalf("got %s, want %s", describe(all), want)
		}
		p.send(ack(r))
	}
}

func TestDeltaUnsubscribingANameUnderWildcardSendsItAgain(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "*", "a", "none"))
		p.send(ack(p.next()))
		p.send(unsubscribe(resourcev3.EndpointType, "a", "none"))
		r := p.next()
		equal(t, "how it stands", describe(r), "[a=HE]")
		p.send(ack(r))
		p.nothing()
		equal(t, "slots", len(b.server.published.assignments.slots), 1)
		p.cancel()
	})
}

func TestDeltaLargeResponsesAreSplit(t *testing.T) {
	inBubble(t, Options{MaxResponseBytes: 3000}, func(t *testing.T, b *bench) {
		u := publish.Update{}
		for i := range 10 {
			u.Assignments = append(u.Assignments, assignment(string(rune('a'+i)), health.EndpointID(100*i), 40))
		}
		b.server.Update(u)
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "*"))
		got := map[string]string{}
		responses := 0
		for len(got) < 10 {
			r := p.next()
			responses++
			if size := proto.Size(r); size > 3200 {
				t.Errorf("a response of %d bytes", size)
			}
			for name, version := range versions(r) {
				if got[name] != "" {
					t.Errorf("%s was sent twice", name)
				}
				got[name] = version
			}
			p.nothing() // before the ACK
			p.send(ack(r))
		}
		p.nothing()
		if responses < 4 {
			t.Errorf("%d responses", responses)
		}
		p.cancel()
	})
}
