package coordinator_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/test/proxyless"
)

// TestGRPCBehindRelay covers the xDS client of gRPC with hdsd as its only server, in front of a control plane
// with a listener, a route, a cluster and endpoints. Calls leave a failing endpoint, also while the control
// plane is away.
func TestGRPCBehindRelay(t *testing.T) {
	t.Parallel()
	one, other := proxyless.NewBackend(t), proxyless.NewBackend(t)
	m := newManagement(t)
	m.come()
	cluster := proto.CloneOf(byEDS("web")[0].(*clusterv3.Cluster))
	cluster.HealthChecks[0].HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}}
	assignment := endpoints("web", corev3.HealthStatus_UNKNOWN, one.Address, other.Address).(*endpointv3.ClusterLoadAssignment)
	group := assignment.GetEndpoints()[0] // gRPC refuses one without a locality or a weight
	group.Locality, group.LoadBalancingWeight = &corev3.Locality{Zone: "a"}, wrapperspb.UInt32(1)
	m.extra = map[resource.Type][]types.Resource{resource.ListenerType: {listener(t, "shop", "web")}}
	m.says([]types.Resource{cluster}, assignment)
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.checker("c1")
	c := proxyless.NewClient(t, "xds:///shop", proxyless.Bootstrap{Node: proxyless.Node{ID: "shop"}, Servers: []proxyless.Server{{Address: s.dial().Target()}}})
	s.follows(c, one, other)
	m.leave()
	s.follows(c, one, other)
}
