package csds

import (
	"slices"
	"testing"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// fixed is a source of clients that do not change.
type fixed []Client

func (f fixed) Clients(yield func(Client) bool) { slices.Values(f)(yield) }

func body(t testing.TB, m proto.Message) Body {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return func() *anypb.Any { return a }
}

func resources(all ...Resource) func(func(Resource) bool) { return slices.Values(all) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

func cla(name string, health corev3.HealthStatus) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HealthStatus: health}},
	}}}
}

// fleet has a client in each situation.
func fleet(t testing.TB) fixed {
	node := someNode(t)
	node.Extensions = []*corev3.Extension{{Name: "envoy.health_checkers.redis"}}
	refusedBefore := body(t, cla("api", corev3.HealthStatus_TIMEOUT))
	return fixed{
		{
			Node: node, Scope: "sidecar/ADS",
			Resources: resources(
				Resource{TypeURL: resourcev3.ClusterType, Name: "web", Version: "01", Updated: start, Body: body(t, &clusterv3.Cluster{Name: "web"}),
					Config: statusv3.ConfigStatus_SYNCED, Client: adminv3.ClientResourceStatus_ACKED},
				Resource{TypeURL: resourcev3.ClusterType, Name: "bad", Version: "02", Updated: start, Body: body(t, &clusterv3.Cluster{Name: "bad"}),
					Config: statusv3.ConfigStatus_ERROR, Client: adminv3.ClientResourceStatus_NACKED,
					Error: &Error{Details: "no such policy", Version: "02", Time: start.Add(time.Second)}},
				Resource{TypeURL: resourcev3.EndpointType, Name: "web", Version: "03", Updated: start, Body: body(t, cla("web", corev3.HealthStatus_HEALTHY)),
					Config: statusv3.ConfigStatus_STALE, Client: adminv3.ClientResourceStatus_ACKED},
				Resource{TypeURL: resourcev3.EndpointType, Name: "api", Version: "04", Updated: start, Body: body(t, cla("api", corev3.HealthStatus_UNHEALTHY)),
					Config: statusv3.ConfigStatus_STALE, Client: adminv3.ClientResourceStatus_REQUESTED,
					Error: &Error{Details: "bad weight", Version: "03", Time: start, Body: refusedBefore}},
				Resource{TypeURL: resourcev3.EndpointType, Name: "gone",
					Config: statusv3.ConfigStatus_NOT_SENT, Client: adminv3.ClientResourceStatus_DOES_NOT_EXIST},
			),
		},
		{
			Node: &corev3.Node{Id: "quiet"}, Scope: "quiet/EDS",
			Resources: resources(Resource{TypeURL: resourcev3.EndpointType, Name: "gone",
				Config: statusv3.ConfigStatus_NOT_SENT, Client: adminv3.ClientResourceStatus_DOES_NOT_EXIST}),
		},
		{
			Node: &corev3.Node{Id: "checker-1"}, Scope: "checker-1/HDS",
			Resources: resources(Resource{
				TypeURL: "type.googleapis.com/envoy.service.health.v3.HealthCheckSpecifier", Name: "checker-1",
				Version: "05", Updated: start, Body: body(t, &healthv3.HealthCheckSpecifier{Interval: durationpb.New(time.Second)}),
				Config: statusv3.ConfigStatus_SYNCED, Client: adminv3.ClientResourceStatus_ACKED,
			}),
		},
		{Node: nil, Scope: "/ADS"},
	}
}
