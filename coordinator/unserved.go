package coordinator

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/rest"
	"hdsd/peer"
	"hdsd/peer/limit"
)

// knownServices are services of other servers, which Envoys and gRPC clients call. hdsd serves them with a relay
// only, or not at all. They are values of a label.
var knownServices = map[string]bool{
	"envoy.service.accesslog.v3.AccessLogService":                true,
	"envoy.service.auth.v3.Authorization":                        true,
	"envoy.service.cluster.v3.ClusterDiscoveryService":           true,
	"envoy.service.discovery.v2.AggregatedDiscoveryService":      true,
	"envoy.service.discovery.v3.AggregatedDiscoveryService":      true,
	"envoy.service.endpoint.v3.EndpointDiscoveryService":         true,
	"envoy.service.event_reporting.v3.EventReportingService":     true,
	"envoy.service.ext_proc.v3.ExternalProcessor":                true,
	"envoy.service.extension.v3.ExtensionConfigDiscoveryService": true,
	"envoy.service.listener.v3.ListenerDiscoveryService":         true,
	"envoy.service.load_stats.v2.LoadReportingService":           true,
	"envoy.service.load_stats.v3.LoadReportingService":           true,
	"envoy.service.metrics.v3.MetricsService":                    true,
	"envoy.service.network_ext_proc.v3.NetworkExternalProcessor": true,
	"envoy.service.rate_limit_quota.v3.RateLimitQuotaService":    true,
	"envoy.service.ratelimit.v3.RateLimitService":                true,
	"envoy.service.route.v3.RouteDiscoveryService":               true,
	"envoy.service.route.v3.ScopedRoutesDiscoveryService":        true,
	"envoy.service.route.v3.VirtualHostDiscoveryService":         true,
	"envoy.service.runtime.v3.RuntimeDiscoveryService":           true,
	"envoy.service.secret.v3.SecretDiscoveryService":             true,
	"envoy.service.tap.v3.TapSinkService":                        true,
	"envoy.service.trace.v3.TraceService":                        true,
	"opentelemetry.proto.collector.logs.v1.LogsService":          true,
	"opentelemetry.proto.collector.metrics.v1.MetricsService":    true,
	"opentelemetry.proto.collector.trace.v1.TraceService":        true,
}

// unserved answers calls of services and methods that hdsd does not serve.
type unserved struct {
	log   zerolog.Logger
	calls *prometheus.CounterVec
	relay bool // hdsd has a relay; set before the server serves
	pace  limit.Pace
}

func newUnserved(registerer prometheus.Registerer, log zerolog.Logger) *unserved {
	u := &unserved{log: log, calls: promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_grpc_unserved_calls_total", Help: "Calls of gRPC services and methods that hdsd does not serve.",
	}, []string{"grpc_service"})}
	u.calls.WithLabelValues("other") // the series exists from the start
	return u
}

// options returns the options of the gRPC server. They must come first: the method of an unserved call may be
// any text, and must not reach metrics or access rules.
func (u *unserved) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			return status.Error(codes.Unimplemented, "hdsd does not serve this call")
		}),
		grpc.ChainStreamInterceptor(func(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if server != nil {
				return handle(server, s)
			}
			return withReason(u.refuse(s, info.FullMethod))
		}),
	}
}

// refuse counts and logs an unserved call, and returns its error.
func (u *unserved) refuse(s grpc.ServerStream, call string) error {
	service, _, _ := strings.Cut(strings.TrimPrefix(call, "/"), "/")
	label := "other"
	if knownServices[service] {
		label = service
	}
	u.calls.WithLabelValues(label).Inc()
	u.pace.Warn(time.Now(), &u.log, "call_unserved").Str("caller", limit.Name(peer.FromContext(s.Context()).Key())).Str("call", rest.Brief(call)).
		Msg("a caller asks for a gRPC service that hdsd does not serve: give it the address of a server that does")
	advice := "without a relay, hdsd serves clusters and endpoints only"
	if u.relay {
		advice = "only streams of discovery (v3) and load reports (v3) pass through the relay"
	}
	return status.Errorf(codes.Unimplemented, "hdsd does not serve %s: %s; give the client the address of a server that does", rest.Brief(call), advice)
}
