package relay

import (
	"strings"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
)

// method is a streaming method of a discovery service.
type method struct {
	fullName string // full name of the method of the control plane
	typeURL  string // of a service of one type
	delta    bool
	loads    bool // it takes load reports: its messages pass unchanged
}

// service is a discovery service with its two streaming methods. An empty method does not exist.
type service struct{ name, state, delta, typeURL string }

const aggregated = "envoy.service.discovery.v3.AggregatedDiscoveryService"

// services are the discovery services of the relay.
var services = []service{
	{aggregated, "StreamAggregatedResources", "DeltaAggregatedResources", ""},
	{"envoy.service.cluster.v3.ClusterDiscoveryService", "StreamClusters", "DeltaClusters", resourcev3.ClusterType},
	{"envoy.service.endpoint.v3.EndpointDiscoveryService", "StreamEndpoints", "DeltaEndpoints", resourcev3.EndpointType},
	{"envoy.service.listener.v3.ListenerDiscoveryService", "StreamListeners", "DeltaListeners", resourcev3.ListenerType},
	{"envoy.service.route.v3.RouteDiscoveryService", "StreamRoutes", "DeltaRoutes", resourcev3.RouteType},
	{"envoy.service.route.v3.ScopedRoutesDiscoveryService", "StreamScopedRoutes", "DeltaScopedRoutes", resourcev3.ScopedRouteType},
	{"envoy.service.route.v3.VirtualHostDiscoveryService", "", "DeltaVirtualHosts", resourcev3.VirtualHostType},
	{"envoy.service.secret.v3.SecretDiscoveryService", "StreamSecrets", "DeltaSecrets", resourcev3.SecretType},
	{"envoy.service.runtime.v3.RuntimeDiscoveryService", "StreamRuntime", "DeltaRuntime", resourcev3.RuntimeType},
	{"envoy.service.extension.v3.ExtensionConfigDiscoveryService", "StreamExtensionConfigs", "DeltaExtensionConfigs", resourcev3.ExtensionConfigType},
}

// loadReporting is the service that takes load reports.
const loadReporting = "envoy.service.load_stats.v3.LoadReportingService"

// Register adds the discovery services and the load reporting service to a gRPC server. The server has
// to use wire.Codec.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	for _, svc := range services {
		desc := &grpc.ServiceDesc{ServiceName: svc.name, HandlerType: (*any)(nil), Metadata: "envoy/" + strings.ReplaceAll(svc.name, ".", "/")}
		for _, m := range []struct {
			name  string
			delta bool
		}{{svc.state, false}, {svc.delta, true}} {
			if m.name == "" {
				continue
			}
			target := method{fullName: s.upstreamMethod(&svc, m.name, m.delta), typeURL: svc.typeURL, delta: m.delta}
			desc.Streams = append(desc.Streams, grpc.StreamDesc{
				StreamName: m.name, ServerStreams: true, ClientStreams: true,
				Handler: func(_ any, gs grpc.ServerStream) error { return s.serve(gs, target) },
			})
		}
		r.RegisterService(desc, s)
	}
	const name = "StreamLoadStats"
	// A load report has the node in the same field as a delta request.
	target := method{fullName: "/" + loadReporting + "/" + name, delta: true, loads: true}
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: loadReporting, HandlerType: (*any)(nil), Metadata: "envoy/service/load_stats/v3/lrs.proto",
		Streams: []grpc.StreamDesc{{
			StreamName: name, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, gs grpc.ServerStream) error { return s.serve(gs, target) },
		}},
	}, s)
}

// upstreamMethod returns the full name of the control plane's method for a stream of a client: the same
// method, or that of the aggregated service if the configuration says so.
func (s *Server) upstreamMethod(svc *service, name string, delta bool) string {
	switch {
	case !s.options.Aggregated:
	case delta:
		return "/" + aggregated + "/DeltaAggregatedResources"
	default:
		return "/" + aggregated + "/StreamAggregatedResources"
	}
	return "/" + svc.name + "/" + name
}
