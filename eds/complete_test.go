package eds

import (
	"net/http"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/peer/access"
	"hdsd/publish"
)

func TestIncompleteSendsNoAbsence(t *testing.T) {
	inBubble(t, Options{Incomplete: true}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		b.server.Update(publish.Update{Clusters: clusters("a", "1")})
		named, all, again := b.delta(), b.delta(), b.delta()
		named.send(subscribe(resourcev3.EndpointType, "a", "late", "none"))
		all.send(subscribe(resourcev3.ClusterType))
		reconnect := subscribe(resourcev3.EndpointType, "a", "late", "none")
		reconnect.InitialResourceVersions = map[string]string{"late": "0000000000000001", "none": "x"}
		again.send(reconnect)
		state, clusterState, stateAll := b.state(), b.state(), b.state()
		state.send(want(resourcev3.EndpointType, "a", "late", "none"))
		clusterState.send(want(resourcev3.ClusterType))
		stateAll.send(want(resourcev3.EndpointType))

		for _, p := range []*deltaPeer{named, again} {
			r := p.next()
			equal(t, "known", describe(r), "[a=HE]")
			p.send(ack(r))
			p.nothing()
		}
		r := all.next()
		equal(t, "known clusters", describe(r), "[a=1]")
		all.send(ack(r))
		s := state.next()
		equal(t, "known, state of the world", describeState(s), "[a=HE]")
		state.send(ackState(s, "a", "late", "none"))
		s = stateAll.next()
		equal(t, "everything known", describeState(s), "[a=HE b=HE]")
		stateAll.send(ackState(s))
		stateAll.nothing()
		clusterState.nothing()
		stale := 0
		for _, c := range b.server.Clients(nil) {
			stale += c.Stale
		}
		equal(t, "nobody knows yet", stale, 3*2+1)

		b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("late", 7, 1)}, RemovedAssignments: []string{"b"}})
		for _, p := range []*deltaPeer{named, again} {
			r := p.next()
			equal(t, "late", describe(r), "[late=UN]")
			p.send(ack(r))
			p.nothing()
		}
		s = state.next()
		equal(t, "late, state of the world", describeState(s), "[late=UN]")
		state.send(ackState(s, "a", "late", "none"))
		s = stateAll.next()
		equal(t, "late, everything", describeState(s), "[late=UN]")
		stateAll.send(ackState(s))
		stateAll.nothing()
		b.server.Update(publish.Update{Clusters: clusters("b", "2")})
		clusterState.nothing()

		b.server.Complete()
		equal(t, "absent", describe(named.next()), "[-none]")
		equal(t, "absent, reconnected", describe(again.next()), "[-none]")
		equal(t, "clusters", describeState(clusterState.next()), "[a=1 b=2]")
		equal(t, "removed meanwhile", describeState(stateAll.next()), "[b=]")
		equal(t, "added", describe(all.next()), "[b=2]")
		equal(t, "absent, state of the world", describeState(state.next()), "[none=]")
		for _, p := range []*deltaPeer{named, all, again} {
			p.cancel()
		}
		for _, p := range []*statePeer{state, clusterState, stateAll} {
			p.cancel()
		}
	})
}

func TestCompleteAnswersWildcardsWithNothing(t *testing.T) {
	inBubble(t, Options{Incomplete: true}, func(t *testing.T, b *bench) {
		d, s := b.delta(), b.state()
		for _, typeURL := range []string{resourcev3.ClusterType, resourcev3.EndpointType} {
			d.send(subscribe(typeURL))
			s.send(want(typeURL))
		}
		and := b.delta()
		and.send(subscribe(resourcev3.EndpointType, "*", "none"))
		for _, p := range []*deltaPeer{d, and} {
			p.nothing()
		}
		s.nothing()
		b.server.Complete()
		equal(t, "everything and a name", describe(and.next()), "[-none]")
		and.cancel()
		for range 2 {
			equal(t, "delta", describe(d.next()), "[]")
			equal(t, "state of the world", describeState(s.next()), "[]")
		}
		b.server.Complete() // once more says nothing
		d.nothing()
		d.cancel()
		s.cancel()
	})
}

func TestFetchWhileIncomplete(t *testing.T) {
	inBubble(t, Options{Incomplete: true}, func(t *testing.T, b *bench) {
		b.publish("a")
		b.server.Update(publish.Update{Clusters: clusters("a", "1")})
		type fetch = func(*discoveryv3.DiscoveryRequest) (*discoveryv3.DiscoveryResponse, error)
		for name, c := range map[string]struct {
			fetch fetch
			path  string
			m     *discoveryv3.DiscoveryRequest
			code  codes.Code
			http  int
		}{
			"known":      {b.fetchEndpoints, EndpointsPath, want("", "a"), codes.OK, http.StatusOK},
			"unknown":    {b.fetchEndpoints, EndpointsPath, want("", "a", "b"), codes.Unavailable, http.StatusServiceUnavailable},
			"everything": {b.fetchEndpoints, EndpointsPath, want(""), codes.Unavailable, http.StatusServiceUnavailable},
			"the star":   {b.fetchEndpoints, EndpointsPath, want("", "*"), codes.Unavailable, http.StatusServiceUnavailable},
			"a cluster":  {b.fetchClusters, ClustersPath, want("", "a"), codes.Unavailable, http.StatusServiceUnavailable},
		} {
			asks := func(when string, wantCode codes.Code, wantHTTP int) {
				t.Helper()
				_, err := c.fetch(c.m)
				equal(t, name+" "+when, status.Code(err), wantCode)
				code, _ := pollREST(t, b.server, c.path, c.m)
				equal(t, name+" "+when+" by REST", code, wantHTTP)
			}
			b.server.published.incomplete.Store(true)
			asks("before", c.code, c.http)
			b.server.Complete()
			asks("after", codes.OK, http.StatusOK)
		}
	})
}

// TestCompleteWhileAResponseIsMade: a name that is withheld from the response is
// answered by the next one.
func TestCompleteWhileAResponseIsMade(t *testing.T) {
	s := NewServer(Options{Incomplete: true})
	u := newSubscription(&stream{server: s, permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1)}, s.published.assignments)
	if err := u.requests.process(&request{names: []string{"none"}}); err != nil {
		t.Fatal(err)
	}
	incomplete := s.published.incomplete.Load()
	batch, _ := u.nextWatches(incomplete)
	s.streams.add(u.stream)
	u.stream.subs[1] = u
	s.Complete()
	b := builder{sub: u, limit: 1000, incomplete: incomplete}
	r, more := u.build(&b, batch, []*frame{nil}, u.stream.nonce)
	equal(t, "withheld", r == nil && more, true)
	r = u.next(u.stream.nonce, 1000)
	equal(t, "answered", r != nil && len(r.rare.removed) == 1, true)
}
