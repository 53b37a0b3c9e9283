package coordinator_test

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// single opens a stream of a service of one type, by state of the world.
func (s *site) single(method string, names ...string) grpc.ClientStream {
	s.t.Helper()
	stream, err := s.dial().NewStream(s.t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err == nil { // the service implies the type
		err = stream.SendMsg(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "edge-1"}, ResourceNames: names})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return stream
}

// TestSingleTypeServicesAreRelayed covers streams of one type, which go to the aggregated service if the
// configuration names that.
func TestSingleTypeServicesAreRelayed(t *testing.T) {
	t.Parallel()
	address, answers := upstream(t)
	m := newManagement(t)
	m.come()
	m.extra = map[string][]types.Resource{resourcev3.ListenerType: {&listenerv3.Listener{Name: "front"}}}
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.ready()
	s.checker("c1")

	var got discoveryv3.DiscoveryResponse
	front := &listenerv3.Listener{}
	if err := s.single("/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners").RecvMsg(&got); err != nil ||
		got.GetTypeUrl() != resourcev3.ListenerType || got.GetResources()[0].UnmarshalTo(front) != nil || front.GetName() != "front" {
		t.Errorf("listeners: %v, %v", &got, err)
	}
	clusters := s.single("/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters")
	wantChecks := func(want int) {
		t.Helper()
		web := &clusterv3.Cluster{}
		if err := clusters.RecvMsg(&got); err != nil || got.GetResources()[0].UnmarshalTo(web) != nil || len(web.GetHealthChecks()) != want {
			t.Errorf("clusters: %v, %v", &got, err)
		}
		if err := clusters.SendMsg(&discoveryv3.DiscoveryRequest{VersionInfo: got.GetVersionInfo(), ResponseNonce: got.GetNonce()}); err != nil {
			t.Fatal(err)
		}
	}
	wantChecks(1)
	stream := s.single("/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints", "web")
	await := func(want corev3.HealthStatus) {
		t.Helper()
		for is := corev3.HealthStatus(-1); is != want; {
			if err := stream.RecvMsg(&got); err != nil {
				t.Fatal(err)
			}
			a := &endpointv3.ClusterLoadAssignment{}
			if err := got.GetResources()[0].UnmarshalTo(a); err != nil {
				t.Fatal(err)
			}
			is = a.GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus()
			if err := stream.SendMsg(&discoveryv3.DiscoveryRequest{ResourceNames: []string{"web"}, VersionInfo: got.GetVersionInfo(), ResponseNonce: got.GetNonce()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	await(corev3.HealthStatus_HEALTHY)
	wantChecks(0)
	answers.Store(fails)
	await(corev3.HealthStatus_UNHEALTHY)
}

// TestServiceThatControlPlaneLacks covers the same error as without hdsd.
func TestServiceThatControlPlaneLacks(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.come()
	s := newSite(t, t.TempDir(), strings.Replace(relaying(m, ""), "AGGREGATED_DELTA_GRPC", "DELTA_GRPC", 1), "")
	s.ready()
	err := s.single("/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners").RecvMsg(&discoveryv3.DiscoveryResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}
