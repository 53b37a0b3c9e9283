package eds

import (
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
	"hdsd/publish"
)

func TestStateSendsOnlyChangedAssignments(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.state()
		p.send(want(resourcev3.EndpointType, "a", "b", "none"))
		r := p.next()
		equal(t, "first", describeState(r), "[a=HE b=HE none=]")
		equal(t, "identifier", r.GetControlPlane().GetIdentifier(), "hdsd-test")
		p.send(ackState(r, "a", "b", "none"))
		p.nothing()
		b.server.setHealth(1, health.Unhealthy)
		r = p.next()
		equal(t, "changed", describeState(r), "[b=UN]")
		p.send(ackState(r, "a", "b", "none"))
		p.nothing()
		b.server.Update(publish.Update{RemovedAssignments: []string{"a"}})
		r = p.next()
		equal(t, "removed is empty", describeState(r), "[a=]")
		p.send(ackState(r, "a", "b", "none"))
		p.nothing()
		p.cancel()
	})
}

// Envoy waits 15 s for the assignment of each cluster, and does not acknowledge the
// clusters before.
func TestStateSendsAnEmptyAssignmentForAMissingOne(t *testing.T) {
	inBubble(t, Options{Incomplete: true}, func(t *testing.T, b *bench) {
		b.publish("web")
		b.server.Update(publish.Update{Clusters: clusters("ghost", "1", "web", "1")})
		p := b.state()
		p.send(want(resourcev3.EndpointType, "ghost", "web"))
		r := p.next()
		equal(t, "while incomplete", describeState(r), "[web=HE]")
		p.send(ackState(r, "ghost", "web"))
		p.nothing()
		b.server.Complete()
		r = p.next()
		equal(t, "complete", describeState(r), "[ghost=]")
		equal(t, "on its way", b.statusText(), "ghost: outstanding absent, web: accepted HE")
		p.send(ackState(r, "ghost", "web"))
		p.nothing()
		equal(t, "taken", b.statusText(), "ghost: accepted absent, web: accepted HE")
		equal(t, "synced", b.server.Clients(nil)[0].Synced, 2)

		b.server.setHealth(7, health.Healthy)
		b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("ghost", 7, 1)}})
		r = p.next()
		equal(t, "when it comes", describeState(r), "[ghost=HE]")
		p.send(ackState(r, "ghost", "web"))
		p.nothing()
		p.cancel()
		p.ends()

		b.server.Update(publish.Update{RemovedAssignments: []string{"ghost"}})
		p = b.state()
		p.send(want(resourcev3.EndpointType, "ghost", "web"))
		equal(t, "gone while the client was away", describeState(p.next()), "[ghost= web=HE]")
		p.cancel()
	})
}

func TestStateRefusedIsParkedUntilThatResourceChanges(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.state()
		p.send(want(resourcev3.EndpointType, "a", "b"))
		p.send(nackState(p.next(), "bad weight", "a", "b"))
		p.nothing()
		equal(t, "last error", b.server.Clients(nil)[0].LastError, "bad weight")
		equal(t, "errors", b.server.Clients(nil)[0].Error, 2)
		b.server.setHealth(0, health.Unhealthy)
		equal(t, "changed", describeState(p.next()), "[a=UN]")
		p.cancel()
	})
}

func TestStateStaleNonceIsNoAckAndGetsNoResponse(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.state()
		p.send(want(resourcev3.EndpointType, "a"))
		first := p.next()
		p.send(ackState(first, "a"))
		p.nothing()
		b.server.setHealth(0, health.Unhealthy)
		second := p.next()
		p.send(ackState(first, "b"))
		p.send(ackState(first, "a", "b"))
		p.nothing()
		p.send(ackState(second, "a", "b"))
		third := p.next()
		equal(t, "dropped and taken up again", describeState(third), "[a=UN b=HE]")
		p.send(ackState(third, "a", "b"))
		p.nothing()
		p.send(ackState(first, "a", "b", "c"))
		p.nothing()
		equal(t, "resources", b.server.Clients(nil)[0].Resources, 2)
		p.cancel()
	})
}

func TestStateNamesReplaceThoseBefore(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.state()
		p.send(want(resourcev3.EndpointType, "a", "b"))
		r := p.next()
		p.send(ackState(r, "a"))
		p.nothing()
		b.server.setHealth(1, health.Unhealthy)
		p.nothing()
		p.send(ackState(r, "a", "b"))
		r = p.next()
		equal(t, "subscribed again", describeState(r), "[b=UN]")
		p.send(ackState(r)) // an empty list is nothing now, not everything
		p.nothing()
		b.server.setHealth(0, health.Unhealthy)
		p.nothing()
		equal(t, "resources", b.server.Clients(nil)[0].Resources, 0)
		p.cancel()
	})
}

func TestStateClustersComeWhole(t *testing.T) {
	for name, first := range map[string][]string{"legacy": nil, "explicit": {"*"}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, b *bench) {
				p := b.state()
				p.send(want(resourcev3.ClusterType, first...))
				r := p.next()
				equal(t, "an answer though there is nothing", describeState(r), "[]")
				p.send(ackState(r, first...))
				p.nothing()
				b.server.Update(publish.Update{Clusters: clusters("a", "1", "b", "1")})
				for {
					r = p.next()
					p.send(ackState(r, first...))
					if describeState(r) == "[a=1 b=1]" {
						break
					}
				}
				b.server.Update(publish.Update{Clusters: clusters("b", "2")})
				r = p.next()
				equal(t, "changed", describeState(r), "[a=1 b=2]")
				p.send(nackState(r, "no", first...))
				p.nothing()
				b.server.Update(publish.Update{RemovedClusters: []string{"a"}})
				r = p.next()
				equal(t, "removed", describeState(r), "[b=2]")
				p.send(ackState(r, first...))
				p.nothing()
				b.server.Update(publish.Update{Clusters: clusters("b", "2")})
				p.nothing() // the same as it was
				equal(t, "synced", b.server.Clients(nil)[0].Synced, 1)
				p.cancel()
			})
		})
	}
}

func TestStateNamedClusters(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.server.Update(publish.Update{Clusters: clusters("a", "1", "b", "1")})
		p := b.state()
		p.send(want(resourcev3.ClusterType, "a"))
		r := p.next()
		equal(t, "first", describeState(r), "[a=1]")
		p.send(ackState(r, "a", "none"))
		r = p.next()
		equal(t, "what is missing is seen by its absence", describeState(r), "[a=1]")
		p.send(ackState(r, "a", "none"))
		p.nothing()
		b.server.Update(publish.Update{Clusters: clusters("b", "2")})
		p.nothing()
		p.cancel()
	})
}

func TestStateLegacyWildcardEndsWithAName(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.state()
		p.send(want(resourcev3.EndpointType))
		r := p.next()
		equal(t, "everything", describeState(r), "[a=HE b=HE]")
		p.send(ackState(r, "a"))
		r = p.next()
		equal(t, "newly named", describeState(r), "[a=HE]")
		p.send(ackState(r, "a"))
		p.nothing()
		b.server.setHealth(1, health.Unhealthy)
		p.nothing()
		equal(t, "resources", b.server.Clients(nil)[0].Resources, 1)
		p.cancel()
	})
}
