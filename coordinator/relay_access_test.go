package coordinator_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	pki "hdsd/test/authority"
)

// TestForwardedIdentity covers the values of relay.forward: the control plane gets nothing, the certificate
// or the token of a client.
func TestForwardedIdentity(t *testing.T) {
	t.Parallel()
	ca := pki.New(t, "one")
	pair := ca.Issue(t, "edge-1")
	hash := sha256.Sum256(pair.Certificate.Certificate[0])
	for _, test := range []struct{ forward, certificate, token string }{
		{"NONE", "", ""},
		{"CLIENT_CERTIFICATE", "Hash=" + hex.EncodeToString(hash[:]) + ";", ""},
		{"AUTHORIZATION", "", "Bearer x"},
	} {
		t.Run(test.forward, func(t *testing.T) {
			t.Parallel()
			m := newManagement(t)
			opened := make(chan metadata.MD, 1)
			m.hears.onOpen = func(ctx context.Context) {
				md, _ := metadata.FromIncomingContext(ctx)
				opened <- md
			}
			m.come()
			m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
			tls := strings.Replace(relaying(m, ", forward: "+test.forward), `grpc: {address: "127.0.0.1:0"`, `grpc: {address: "127.0.0.1:0", `+mutual, 1)
			s := secured(t, ca, tls)
			s.ready()
			to := s.dial(grpc.WithTransportCredentials(credentials.NewTLS(trusting(ca, pair))), grpc.WithStreamInterceptor(
				func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
					return open(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer x", "x-forwarded-client-cert", "forged"), d, c, method, o...)
				}))
			c := newClient(t, to, true, "edge-1")
			c.talker.ask(resourcev3.ClusterType, nil, nil)
			md := <-opened
			if got := strings.Join(md.Get("authorization"), "|"); got != test.token {
				t.Errorf("authorization: %q, want %q", got, test.token)
			}
			got := strings.Join(md.Get("x-forwarded-client-cert"), "|")
			if !strings.HasPrefix(got, test.certificate) || test.certificate == "" && got != "" {
				t.Errorf("x-forwarded-client-cert: %q, want %q", got, test.certificate)
			}
		})
	}
}

// TestRelayedClientKeepsNode covers control planes that use the node of a later request: hdsd checks each
// node against the grants.
func TestRelayedClientKeepsNode(t *testing.T) {
	t.Parallel()
	ca := pki.New(t, "one")
	m := newManagement(t)
	heard := make(chan string, 16)
	m.hears.onState = func(r *discoveryv3.DiscoveryRequest) { heard <- r.GetNode().GetId() }
	m.come()
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
	text := strings.Replace(relaying(m, ""), `grpc: {address: "127.0.0.1:0"`, `grpc: {address: "127.0.0.1:0", `+mutual, 1)
	s := secured(t, ca, text+"access: {grants: [{roles: [DATA_PLANE], san: '{node.id}'}]}\n")
	s.eventually("the service", func() bool { code, _ := s.get("/readyz"); return code == 200 })
	request := func(n *corev3.Node) *discoveryv3.DiscoveryRequest {
		return &discoveryv3.DiscoveryRequest{Node: n, TypeUrl: resourcev3.ClusterType}
	}
	to := s.dial(grpc.WithTransportCredentials(credentials.NewTLS(trusting(ca, ca.Issue(t, "edge-1")))))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(to).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []*corev3.Node{node("edge-1", "a"), nil, node("edge-1", "a")} { // Envoys may repeat their node
		_ = stream.Send(request(n))
		if got := <-heard; got != "edge-1" {
			t.Errorf("the control plane hears of %q", got)
		}
	}
	_ = stream.Send(request(node("edge-2", "a")))
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a request of another node: %v", err)
	}
	select {
	case got := <-heard:
		t.Errorf("the control plane hears of %q", got)
	default:
	}
}

// TestForwardedTokensHaveNoRole covers a data plane whose certificate has the role. It may show a token for
// the control plane, which gives no role at hdsd.
func TestForwardedTokensHaveNoRole(t *testing.T) {
	t.Parallel()
	ca := pki.New(t, "one")
	for forward, want := range map[string]codes.Code{"AUTHORIZATION": codes.OK, "NONE": codes.Unauthenticated} {
		m := newManagement(t)
		m.come()
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
		text := strings.Replace(relaying(m, ", forward: "+forward), `grpc: {address: "127.0.0.1:0"`, `grpc: {address: "127.0.0.1:0", `+mutual, 1)
		s := secured(t, ca, text+"access: {grants: [{roles: [DATA_PLANE], san: 'edge-1'}, {roles: [OPERATOR], token_sha256: '"+strings.Repeat("0", 64)+"'}]}\n")
		s.eventually("the service", func() bool { code, _ := s.get("/readyz"); return code == 200 })
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer x"), patience)
		defer cancel()
		ask := func(as pki.Pair) error {
			stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial(grpc.WithTransportCredentials(credentials.NewTLS(trusting(ca, as))))).StreamAggregatedResources(ctx)
			if err != nil {
				return err
			}
			_ = stream.Send(&discoveryv3.DiscoveryRequest{Node: node("edge-1", "a"), TypeUrl: resourcev3.ClusterType}) // Recv returns the reason
			_, err = stream.Recv()
			return err
		}
		if err := ask(ca.Issue(t, "edge-1")); status.Code(err) != want {
			t.Errorf("forward: %s: got %v, want %s", forward, err, want)
		}
		if err := ask(ca.Issue(t, "nobody")); err == nil {
			t.Errorf("forward: %s: a certificate without the role is let in", forward)
		}
		operator := hdsdv1.NewControlClient(s.dial(grpc.WithTransportCredentials(credentials.NewTLS(trusting(ca, ca.Issue(t, "edge-1"))))))
		if _, err := operator.Freeze(ctx, &hdsdv1.FreezeRequest{Reason: "test"}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("forward: %s: a freeze got %v", forward, err)
		}
	}
}

// TestClientWithoutTokenIsRefused covers a control plane that gets the tokens of clients. A client without
// one must not act as hdsd.
func TestClientWithoutTokenIsRefused(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	opened := make(chan struct{}, 4)
	m.hears.onOpen = func(context.Context) { opened <- struct{}{} }
	m.come()
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
	s := newSite(t, t.TempDir(), relaying(m, ", forward: AUTHORIZATION"), "")
	s.ready()
	for _, given := range [][]string{nil, {"authorization", ""}, {"authorization", " "}} {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), given...), patience)
		defer cancel()
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial()).DeltaAggregatedResources(ctx)
		if err == nil {
			_ = stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node("edge-1", "a"), TypeUrl: resourcev3.ClusterType}) // Recv returns the reason
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "authorization header") {
			t.Errorf("with %q: %v", given, err)
		}
	}
	if _, err := s.report("").Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a load report: %v", err)
	}
	if len(opened) > 0 {
		t.Error("the control plane has a stream")
	}
}

// TestRelayNeedsRoleForAllClusters covers all services. The relay cannot hide a part of a response.
func TestRelayNeedsRoleForAllClusters(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("x"))
	token := hex.EncodeToString(sum[:])
	for glob, want := range map[string]codes.Code{"": codes.Unavailable, ", cluster_name_glob: 'pay-*'": codes.PermissionDenied} {
		m := newManagement(t) // which is away
		s := newSite(t, t.TempDir(), relaying(m, "")+"access: {grants: [{roles: [DATA_PLANE], token_sha256: '"+token+"'"+glob+"}]}\n", "")
		s.eventually("the service", func() bool { code, _ := s.get("/readyz"); return code == 200 })
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer x")
		for _, method := range []string{
			"discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources", "discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
			"cluster.v3.ClusterDiscoveryService/StreamClusters", "cluster.v3.ClusterDiscoveryService/DeltaClusters",
			"endpoint.v3.EndpointDiscoveryService/StreamEndpoints", "endpoint.v3.EndpointDiscoveryService/DeltaEndpoints",
			"listener.v3.ListenerDiscoveryService/StreamListeners", "listener.v3.ListenerDiscoveryService/DeltaListeners",
		} {
			stream, err := s.dial().NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/envoy.service."+method)
			if err == nil {
				_ = stream.SendMsg(&corev3.Node{}) // an empty request
				err = stream.RecvMsg(&corev3.Node{})
			}
			if status.Code(err) != want {
				t.Errorf("%s, %q: got %v, want %s", method, glob, err, want)
			}
		}
	}
}

// TestRelayRemembersByIdentity covers a control plane that gives different resources to clients with one
// node. hdsd does the same while the control plane is away.
func TestRelayRemembersByIdentity(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.come()
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
	s := newSite(t, t.TempDir(), relaying(m, ", forward: AUTHORIZATION"), "")
	s.ready()
	as := func(token string) *client {
		c := newClient(t, s.dialWith(token), true, "edge-1")
		c.talker.ask(resourcev3.ClusterType, nil, nil)
		go c.run()
		return c
	}
	first := as("one")
	s.eventually("its clusters", func() bool { return first.cluster("web") != nil })
	m.leave()
	<-first.ended

	other := as("other")
	var err error
	s.eventually("an end", func() bool {
		select {
		case err = <-other.ended:
			return true
		default:
			return other.cluster("web") != nil
		}
	})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("another client that says the same node has %v: %v", other.cluster("web"), err)
	}
	again := as("one")
	s.eventually("what it had", func() bool { return again.cluster("web") != nil })
}

// TestLongTypesAreNotKept covers the type URLs and the texts of refusals that hdsd stores for each stream. A
// client could fill the memory with 32 types of 64 MiB.
func TestLongTypesAreNotKept(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.come()
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.ready()
	c := s.newClient(true, "edge-1")
	c.talker.ask("type.googleapis.com/"+strings.Repeat("x", 1<<20), nil, nil)
	c.talker.ask(resourcev3.ListenerType, nil, nil)
	s.eventually("the client", func() bool {
		_, text := s.get("/v1/clients")
		if len(text) > 1<<19 {
			t.Fatalf("/v1/clients has %d bytes", len(text))
		}
		return strings.Contains(text, resourcev3.ListenerType)
	})
}
