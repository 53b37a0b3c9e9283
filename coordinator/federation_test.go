package coordinator_test

import (
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/test/proxyless"
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

// follows makes one of two backends fail and recover, and waits until a client's calls
// follow.
func (s *site) follows(c *proxyless.Client, one, other *proxyless.Backend) {
	s.t.Helper()
	reached := func(want ...bool) func() bool { return func() bool { return slices.Equal(c.Reach(one, other), want) } }
	s.eventually("calls at both endpoints", reached(true, true))
	one.Fail()
	s.eventually("calls at the other one only", reached(false, true))
	one.Recover()
	s.eventually("calls at both again", reached(true, true))
}

// TestGRPCWithXdstpAuthority covers the xDS client of gRPC: a control plane serves its listener and route,
// and hdsd serves the clusters and endpoints of the xdstp names in these. Calls leave a failing endpoint.
func TestGRPCWithXdstpAuthority(t *testing.T) {
	t.Parallel()
	one, other := proxyless.NewBackend(t), proxyless.NewBackend(t)
	clusters := strings.NewReplacer("http_health_check: {path: /healthz}", "grpc_health_check: {}",
		"- lb_endpoints:", "- locality: {zone: a}\n      load_balancing_weight: 1\n      lb_endpoints:").Replace(static("web", one.Address, other.Address)) // gRPC needs both
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
	s.follows(proxyless.NewClient(t, "xds:///shop", proxyless.Bootstrap{
		Node: proxyless.Node{ID: "shop"}, Servers: []proxyless.Server{{Address: m.address}},
		Authorities: map[string]proxyless.Authority{"hdsd": {Servers: []proxyless.Server{{Address: s.dial().Target()}}}},
	}), one, other)
}
