package eds

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/health"
	"hdsd/internal/wire"
	"hdsd/publish"
)

func (b *bench) fetchEndpoints(m *discoveryv3.DiscoveryRequest) (*discoveryv3.DiscoveryResponse, error) {
	return endpointservice.NewEndpointDiscoveryServiceClient(b.conn).FetchEndpoints(b.t.Context(), m)
}

func (b *bench) fetchClusters(m *discoveryv3.DiscoveryRequest) (*discoveryv3.DiscoveryResponse, error) {
	return clusterservice.NewClusterDiscoveryServiceClient(b.conn).FetchClusters(b.t.Context(), m)
}

// many returns n different names.
func many(n int) (names []string) {
	for i := range n {
		names = append(names, strings.Repeat("x", i+1))
	}
	return names
}

func TestFetch(t *testing.T) {
	locators := &discoveryv3.DiscoveryRequest{
		ResourceNames: []string{"b"}, ResourceLocators: []*discoveryv3.ResourceLocator{{Name: "a"}, {Name: "b"}},
	}
	inBubble(t, Options{MaxNames: 20}, func(t *testing.T, b *bench) {
		b.server.Update(publish.Update{Clusters: clusters("a", "1", "b", "2")})
		b.publish("a", "b", "c")
		b.server.setHealth(1, health.Unhealthy)
		for name, c := range map[string]struct {
			fetch func(*discoveryv3.DiscoveryRequest) (*discoveryv3.DiscoveryResponse, error)
			m     *discoveryv3.DiscoveryRequest
			want  string
			code  codes.Code
		}{
			"one":                {b.fetchEndpoints, want("", "b"), "[b=UN]", codes.OK},
			"by type":            {b.fetchEndpoints, want(resourcev3.EndpointType, "b"), "[b=UN]", codes.OK},
			"twice":              {b.fetchEndpoints, want("", "b", "a", "b"), "[a=HE b=UN]", codes.OK},
			"locators":           {b.fetchEndpoints, locators, "[a=HE b=UN]", codes.OK},
			"no names":           {b.fetchEndpoints, want(""), "[a=HE b=UN c=HE]", codes.OK},
			"an empty name":      {b.fetchEndpoints, want("", ""), "[]", codes.OK},
			"everything":         {b.fetchEndpoints, want("", "*"), "[a=HE b=UN c=HE]", codes.OK},
			"everything and one": {b.fetchEndpoints, want("", "none", "*", "a"), "[a=HE b=UN c=HE]", codes.OK},
			"unknown":            {b.fetchEndpoints, want("", "none"), "[]", codes.OK},
			"one unknown":        {b.fetchEndpoints, want("", "none", "a"), "[a=HE]", codes.OK},
			"clusters":           {b.fetchClusters, want(resourcev3.ClusterType), "[a=1 b=2]", codes.OK},
			"a cluster":          {b.fetchClusters, want("", "b", "c"), "[b=2]", codes.OK},
			"another type":       {b.fetchEndpoints, want(resourcev3.ClusterType, "a"), "", codes.InvalidArgument},
			"another type, too":  {b.fetchClusters, want(resourcev3.EndpointType, "a"), "", codes.InvalidArgument},
			"many names":         {b.fetchEndpoints, want("", many(20)...), "[]", codes.OK},
			"too many names":     {b.fetchEndpoints, want("", many(21)...), "", codes.ResourceExhausted},
			"too long names":     {b.fetchEndpoints, want("", strings.Repeat("x", 20*256+1)), "", codes.ResourceExhausted},
		} {
			r, err := c.fetch(c.m)
			if status.Code(err) != c.code {
				t.Errorf("%s: %v, want %v", name, err, c.code)
			}
			if err == nil && describeState(r) != c.want {
				t.Errorf("%s: got %s, want %s", name, describeState(r), c.want)
			}
		}
	})
}

func TestFetchAnswersAsAStreamDoes(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		p := b.state()
		p.send(want(resourcev3.EndpointType, "a", "b"))
		streamed := p.next()
		fetched, err := b.fetchEndpoints(want("", "b", "a"))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "nonce", fetched.GetNonce(), fetched.GetVersionInfo())
		streamed.Nonce = fetched.GetNonce()
		equal(t, "resources", describeState(fetched), describeState(streamed))
		equal(t, "version", fetched.GetVersionInfo(), streamed.GetVersionInfo())
		equal(t, "type", fetched.GetTypeUrl(), streamed.GetTypeUrl())
		equal(t, "identifier", fetched.GetControlPlane().GetIdentifier(), "hdsd-test")
	})
}

// TestFetchedVersionIsOfTheContent: servers that got the same resources in different
// ways give the same version, as after a restart.
func TestFetchedVersionIsOfTheContent(t *testing.T) {
	version := func(s *Server, names ...string) string {
		t.Helper()
		f, err := s.fetcher.fetch(context.Background(), s.published.assignments, want("", names...))
		if err != nil {
			t.Fatal(err)
		}
		return f.version
	}
	first := NewServer(Options{Identifier: "one"})
	first.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 2), assignment("b", 2, 1)}})
	first.setHealth(1, health.Unhealthy)
	all, a, b := version(first), version(first, "a"), version(first, "b")
	equal(t, "again", version(first), all)
	equal(t, "by name", version(first, "b", "a"), all)
	equal(t, "with what is not there", version(first, "a", "none"), a)
	if a == b || a == all || b == all {
		t.Errorf("different content has the versions %s, %s and %s", a, b, all)
	}

	second := NewServer(Options{Identifier: "two"})
	second.setHealth(8, health.Unhealthy) // before its assignment; the ids are others
	second.Update(publish.Update{Assignments: []publish.Assignment{assignment("b", 3, 1)}})
	second.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 7, 2), assignment("c", 9, 1)}, RemovedAssignments: []string{"c"}})
	equal(t, "of another server", version(second), all)

	second.setHealth(3, health.Healthy)
	equal(t, "of a, which did not change", version(second, "a"), a)
	if version(second, "b") == b || version(second) == all {
		t.Error("what changed has the version it had")
	}
	second.setHealth(3, health.Unknown)
	equal(t, "changed back", version(second), all)
	second.Update(publish.Update{RemovedAssignments: []string{"b"}})
	equal(t, "without b", version(second), a)
}

func TestFetchesTakeTurns(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		s := b.server
		var working []func()
		for range atOnce {
			done, err := s.fetcher.turn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			working = append(working, done)
		}
		ended := make(chan error, 1)
		fetch := func() {
			_, err := b.fetchEndpoints(want("", "a"))
			ended <- err
		}
		answers := func(when string, want ...codes.Code) {
			t.Helper()
			synctest.Wait()
			equal(t, "answers "+when, len(ended), len(want))
			for _, code := range want {
				equal(t, when, status.Code(<-ended), code)
			}
		}
		go fetch()
		answers("while all turns are taken")
		working[0]()
		answers("after a turn came", codes.OK)
		equal(t, "turns taken", len(s.fetcher.turns), atOnce-1)

		if _, err := s.fetcher.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone, leave := context.WithCancel(t.Context())
		go func() {
			_, err := s.fetcher.turn(gone)
			ended <- err
		}()
		answers("while all turns are taken again")
		leave()
		answers("to who left", codes.Canceled)

		go fetch()
		answers("while all turns are taken for long")
		s.Close()
		answers("when hdsd stops", codes.Unavailable)
		working[1]()
		for range 20 { // there is a turn, too
			_, err := s.fetcher.turn(t.Context())
			equal(t, "after the end", status.Code(err), codes.Unavailable)
		}
	})
}

func TestFetchOfEverythingHasChanges(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		gets := func(want string) {
			t.Helper()
			r, err := b.fetchEndpoints(&discoveryv3.DiscoveryRequest{})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "everything", describeState(r), want)
		}
		gets("[]")
		b.publish("b")
		gets("[b=HE]")
		p := b.state()
		p.send(want(resourcev3.EndpointType, "none")) // a place without a resource
		equal(t, "none", describeState(p.next()), "[none=]")
		gets("[b=HE]")
		b.publish("a")
		gets("[a=HE b=HE]")
		b.server.Update(publish.Update{RemovedAssignments: []string{"b"}})
		gets("[a=HE]")
		equal(t, "places", len(b.server.published.find(b.server.published.assignments, nil, "").slots), 2)
	})
}

func TestFetchesAreIntercepted(t *testing.T) {
	s := NewServer(Options{})
	s.Update(publish.Update{Clusters: clusters("a", "1")})
	method := s.fetcher.unary(clusterservice.ClusterDiscoveryService_ServiceDesc, "FetchClusters", s.published.clusters).Methods[0]
	equal(t, "method", method.MethodName, "FetchClusters")
	called := ""
	intercept := func(ctx context.Context, m any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		called = info.FullMethod
		return next(ctx, m)
	}
	decode := func(m any) error {
		in, err := wire.Codec().Marshal(want("", "a"))
		if err != nil {
			return err
		}
		return wire.Codec().Unmarshal(in, m)
	}
	for _, interceptor := range []grpc.UnaryServerInterceptor{nil, intercept} {
		answer, err := method.Handler(nil, t.Context(), decode, interceptor)
		if err != nil {
			t.Fatal(err)
		}
		parts, _ := answer.(*response).MarshalWire()
		r := new(discoveryv3.DiscoveryResponse)
		mustUnmarshal(parts.Materialize(), r)
		equal(t, "answer", describeState(r), "[a=1]")
	}
	equal(t, "intercepted", called, clusterservice.ClusterDiscoveryService_FetchClusters_FullMethodName)
	refuse := func(any) error { return status.Error(codes.Internal, "not a request") }
	if _, err := method.Handler(nil, t.Context(), refuse, nil); status.Code(err) != codes.Internal {
		t.Errorf("what cannot be decoded ends with %v", err)
	}
}
