package coordinator_test

import (
	"context"
	"time"

	"fmt"
	"net"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	out, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// listener is what a gRPC client asks its control plane for: calls go to a cluster.
func listener(t *testing.T, name, cluster string) types.Resource {
	t.Helper()
	return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: packed(t, &managerv3.HttpConnectionManager{
		HttpFilters: []*managerv3.HttpFilter{{Name: "router", ConfigType: &managerv3.HttpFilter_TypedConfig{TypedConfig: packed(t, &routerv3.Router{})}}},
		RouteSpecifier: &managerv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{{
			Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
			}},
		}}}},
	})}}
}

// backend is a gRPC server, and what its health service says.
func backend(t *testing.T) (address string, says *health.Server) {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, says := grpc.NewServer(), health.NewServer()
	healthv1.RegisterHealthServer(server, says)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(at) }()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return at.Addr().String(), says
}

// xdsServers is an entry of a gRPC bootstrap.
func xdsServers(address string) string {
	return fmt.Sprintf(`[{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}]`, address)
}

// calls is a gRPC client that finds its two backends by xDS.
type calls struct {
	t          *testing.T
	conn       *grpc.ClientConn
	one, other string
}

// newCalls has calls to xds:///shop go where a bootstrap's servers say.
func newCalls(t *testing.T, bootstrap, one, other string) calls {
	t.Helper()
	resolver, err := xds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///shop", grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return calls{t: t, conn: conn, one: one, other: other}
}

// reach makes 20 calls, none of which may fail, and tells which backends they reached.
func (c calls) reach() (one, other bool) {
	c.t.Helper()
	for range 20 {
		var by peer.Peer
		ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
		_, err := healthv1.NewHealthClient(c.conn).List(ctx, &healthv1.HealthListRequest{}, grpc.Peer(&by), grpc.WaitForReady(true))
		cancel()
		if err != nil {
			c.t.Fatal(err)
		}
		one, other = one || by.Addr.String() == c.one, other || by.Addr.String() == c.other
	}
	return one, other
}

// callsFollow makes one backend fail and recover, and waits until calls follow.
func (s *site) callsFollow(c calls, one *health.Server) {
	s.t.Helper()
	s.eventually("calls at both endpoints", func() bool { one, other := c.reach(); return one && other })
	one.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	s.eventually("calls at the other one only", func() bool { one, other := c.reach(); return !one && other })
	one.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	s.eventually("calls at both again", func() bool { one, other := c.reach(); return one && other })
}

// TestGRPCTakesAnAuthorityFromHdsd: gRPC's own xDS client has its listener and route from a
// control plane, and by the names in these its clusters and endpoints from hdsd. Calls leave
// a failing endpoint.
func TestGRPCTakesAnAuthorityFromHdsd(t *testing.T) {
	t.Parallel()
	one, failing := backend(t)
	other, _ := backend(t)
	clusters := strings.NewReplacer("http_health_check: {path: /healthz}", "grpc_health_check: {}",
		"- lb_endpoints:", "- locality: {zone: a}\n      load_balancing_weight: 1\n      lb_endpoints:").Replace(static("web", one, other)) // gRPC needs both
	s := newSite(t, t.TempDir(), quick+"data_planes: {xdstp_authority: hdsd}\n", clusters)
	s.checker("c1")
	m := newManagement(t)
	m.come()
	snapshot, err := cache.NewSnapshot("1", map[resource.Type][]types.Resource{
		resource.ListenerType: {listener(t, "shop", "xdstp://hdsd/envoy.config.cluster.v3.Cluster/web")},
	})
	if err == nil {
		err = m.cache.SetSnapshot(t.Context(), "", snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
	calls := newCalls(t, `{"node": {"id": "shop"}, "xds_servers": `+xdsServers(m.address)+
		`, "authorities": {"hdsd": {"xds_servers": `+xdsServers(s.dial().Target())+`}}}`, one, other)
	s.callsFollow(calls, failing)
}
