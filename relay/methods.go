package relay

import (
	"strings"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
)

// method is a streaming method of a discovery service.
type method struct {
	upstream string // the full name of the method to call
	typeURL  string // of a service of one type
	delta    bool
	loads    bool // it takes load reports: its messages pass as they came
}

// service is a discovery service with its two streaming methods.
type service struct{ name, state, delta, typeURL string }

const aggregated = "envoy.service.discovery.v3.AggregatedDiscoveryService"

// services are the services that the relay serves.
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

// Register adds the discovery services, and the one for load reports, to a gRPC server, which has to use wire.Codec.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	for _, one := range services {
		desc := &grpc.ServiceDesc{ServiceName: one.name, HandlerType: (*any)(nil), Metadata: "envoy/" + strings.ReplaceAll(one.name, ".", "/")}
		for _, m := range []struct {
			name  string
			delta bool
		}{{one.state, false}, {one.delta, true}} {
			if m.name == "" {
				continue
			}
			to := method{upstream: s.upstreamMethod(&one, m.name, m.delta), typeURL: one.typeURL, delta: m.delta}
			desc.Streams = append(desc.Streams, grpc.StreamDesc{
				StreamName: m.name, ServerStreams: true, ClientStreams: true,
				Handler: func(_ any, gs grpc.ServerStream) error { return s.serve(gs, to) },
			})
		}
		r.RegisterService(desc, s)
	}
	const name = "StreamLoadStats"
	// The node is where a delta request has it.
	to := method{upstream: "/" + loadReporting + "/" + name, delta: true, loads: true}
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: loadReporting, HandlerType: (*any)(nil), Metadata: "envoy/service/load_stats/v3/lrs.proto",
		Streams: []grpc.StreamDesc{{
			StreamName: name, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, gs grpc.ServerStream) error { return s.serve(gs, to) },
		}},
	}, s)
}

// upstreamMethod returns the method of the control plane that a client's stream leads to:
// its own, or that of the aggregated service where the configuration names it.
func (s *Server) upstreamMethod(of *service, name string, delta bool) string {
	switch {
	case !s.options.Aggregated:
	case delta:
		return "/" + aggregated + "/DeltaAggregatedResources"
	default:
		return "/" + aggregated + "/StreamAggregatedResources"
	}
	return "/" + of.name + "/" + name
}
