package fleet

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3" // of the texts below
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	clusterservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/test/authority"
	"hdsd/test/envoy"
)

// ControlPlane is go-control-plane's server, which gives each node listeners of its own
// (one with a certificate by SDS), their routes by RDS, and clusters with endpoints by EDS.
type ControlPlane struct {
	Address string
	Lease   time.Duration                          // of the assignments of Say; 0: none
	Loads   loadstatsv3.LoadReportingServiceServer // takes load reports; nil: none are taken

	t         testing.TB
	snapshots cache.SnapshotCache
	version   int
	pair      authority.Pair

	server *grpc.Server // nil while it is away
	served sync.WaitGroup

	mu       sync.Mutex
	refusals []string // type and text of what clients refused
}

// NewControlPlane makes one that is away.
func NewControlPlane(t testing.TB) *ControlPlane {
	t.Helper()
	p := &ControlPlane{
		Address: envoy.FreeAddress(t), t: t, snapshots: cache.NewSnapshotCache(true, cache.IDHash{}, nil),
		pair: authority.New(t, "authority").Issue(t, "front"),
	}
	t.Cleanup(p.Leave)
	return p
}

// Come has it serve.
func (p *ControlPlane) Come() {
	p.t.Helper()
	listener, err := net.Listen("tcp", p.Address)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.server = grpc.NewServer()
	services := gcp.NewServer(ctx, p.snapshots, gcp.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
			p.note(r.GetTypeUrl(), r.GetErrorDetail().GetMessage())
			return nil
		},
		StreamDeltaRequestFunc: func(_ int64, r *discoveryv3.DeltaDiscoveryRequest) error {
			p.note(r.GetTypeUrl(), r.GetErrorDetail().GetMessage())
			return nil
		},
	})
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(p.server, services)
	clusterservicev3.RegisterClusterDiscoveryServiceServer(p.server, services)
	endpointservicev3.RegisterEndpointDiscoveryServiceServer(p.server, services)
	if p.Loads != nil {
		loadstatsv3.RegisterLoadReportingServiceServer(p.server, p.Loads)
	}
	p.served.Go(func() {
		defer cancel()
		_ = p.server.Serve(listener)
	})
}

// Leave ends its streams.
func (p *ControlPlane) Leave() {
	if p.server != nil {
		p.server.Stop()
		p.served.Wait()
		p.server = nil
	}
}

func (p *ControlPlane) note(typeURL, refusal string) {
	if refusal == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals = append(p.refusals, typeURL+": "+refusal)
}

// Refused reports whether a client refused something of a type, with a text.
func (p *ControlPlane) Refused(typeURL, text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.refusals {
		if strings.HasPrefix(one, typeURL+": ") && strings.Contains(one, text) {
			return true
		}
	}
	return false
}

// Front is the listeners of a node.
type Front struct{ Plain, TLS, More string }

// Say has it say, to a node, listeners and a cluster with these endpoints. more is one more
// network filter of the plain listener, if it is not empty.
func (p *ControlPlane) Say(node string, at Front, addresses ...string) {
	p.t.Helper()
	p.version++
	assignment := assignmentOf(addresses)
	if p.Lease > 0 {
		assignment.Policy = &endpointv3.ClusterLoadAssignment_Policy{EndpointStaleAfter: durationpb.New(p.Lease)}
	}
	manager := `{"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix": "front", "rds": {"route_config_name": "front", "config_source": {"ads": {}, "resource_api_version": "V3"}},
		"http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}`
	listener := func(name, at, filters, socket string) types.Resource {
		host, port, _ := net.SplitHostPort(at)
		return p.parse(&listenerv3.Listener{}, fmt.Sprintf(`{"name": %q, "address": {"socket_address": {"address": %q, "port_value": %s}},
			"filter_chains": [{"filters": [%s {"name": "http", "typed_config": %s}] %s}]}`, name, host, port, filters, manager, socket))
	}
	socket := `, "transport_socket": {"name": "tls", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
		"common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": "front", "sds_config": {"ads": {}, "resource_api_version": "V3"}}]}}}`
	snapshot, err := cache.NewSnapshot(strconv.Itoa(p.version), map[resource.Type][]types.Resource{
		resource.ListenerType: {listener("plain", at.Plain, at.More, ""), listener("tls", at.TLS, "", socket)},
		resource.RouteType: {p.parse(&routev3.RouteConfiguration{},
			`{"name": "front", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "web"}}]}]}`)},
		resource.SecretType: {&tlsv3.Secret{Name: "front", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: inline(p.pair.Chain), PrivateKey: inline(p.pair.Key),
		}}}},
		resource.ClusterType: {p.parse(&clusterv3.Cluster{}, `{"name": "web", "type": "EDS", "connect_timeout": "1s",
			"common_lb_config": {"healthy_panic_threshold": {"value": 0}, "update_merge_window": "0s"},
			"eds_cluster_config": {"eds_config": {"ads": {}, "resource_api_version": "V3"}},
			"health_checks": [{"timeout": "1s", "interval": "0.25s", "unhealthy_threshold": 2, "healthy_threshold": 1, "http_health_check": {"path": "/healthz"}}]}`)},
		resource.EndpointType: {assignment},
	})
	p.say(node, snapshot, err)
}

// SayClusters has it say, to a node, these clusters and assignments.
func (p *ControlPlane) SayClusters(node string, clusters, assignments []types.Resource) {
	p.t.Helper()
	p.version++
	snapshot, err := cache.NewSnapshot(strconv.Itoa(p.version), map[resource.Type][]types.Resource{
		resource.ClusterType: clusters, resource.EndpointType: assignments,
	})
	p.say(node, snapshot, err)
}

// SayChecked has it say, to a node, a cluster with this health check (JSON, without its times) and these endpoints.
func (p *ControlPlane) SayChecked(node, check string, addresses ...string) {
	p.t.Helper()
	p.SayClusters(node, []types.Resource{p.checkedBy(check, `"ads": {}`)}, []types.Resource{assignmentOf(addresses)})
}

// checkedBy is a cluster with a check, whose endpoints come from this source.
func (p *ControlPlane) checkedBy(check, source string) types.Resource {
	p.t.Helper()
	return p.parse(&clusterv3.Cluster{}, fmt.Sprintf(`{"name": "web", "type": "EDS", "connect_timeout": "1s",
		"eds_cluster_config": {"eds_config": {"resource_api_version": "V3", %s}},
		"health_checks": [{"timeout": "1s", "interval": "0.25s", "unhealthy_threshold": 2, "healthy_threshold": 1, %s}]}`, source, check))
}

func (p *ControlPlane) say(node string, snapshot *cache.Snapshot, err error) {
	p.t.Helper()
	if err == nil {
		err = p.snapshots.SetSnapshot(p.t.Context(), node, snapshot)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// SayGRPC has it say, to a gRPC client, a listener of the client's id and a cluster with these
// endpoints.
func (p *ControlPlane) SayGRPC(node string, addresses ...string) {
	p.t.Helper()
	p.version++
	snapshot, err := cache.NewSnapshot(strconv.Itoa(p.version), map[resource.Type][]types.Resource{
		resource.ListenerType: {p.parse(&listenerv3.Listener{}, fmt.Sprintf(`{"name": %q, "api_listener": {"api_listener": {
			"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
			"route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": ""}, "route": {"cluster": "web"}}]}]},
			"http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}}`, node))},
		resource.ClusterType: {p.parse(&clusterv3.Cluster{}, `{"name": "web", "type": "EDS",
			"eds_cluster_config": {"eds_config": {"ads": {}, "resource_api_version": "V3"}},
			"health_checks": [{"timeout": "1s", "interval": "0.25s", "unhealthy_threshold": 2, "healthy_threshold": 1, "grpc_health_check": {}}]}`)},
		resource.EndpointType: {assignmentOf(addresses)},
	})
	p.say(node, snapshot, err)
}

// assignmentOf has each endpoint in a locality with a weight: gRPC needs both.
func assignmentOf(addresses []string) *endpointv3.ClusterLoadAssignment {
	assignment := &endpointv3.ClusterLoadAssignment{ClusterName: "web"}
	group := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: "a"}, LoadBalancingWeight: wrapperspb.UInt32(1)}
	assignment.Endpoints = append(assignment.Endpoints, group)
	for _, address := range addresses {
		host, text, _ := net.SplitHostPort(address)
		port, _ := strconv.ParseUint(text, 10, 16)
		group.LbEndpoints = append(group.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
			}}},
		}}})
	}
	return assignment
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

func (p *ControlPlane) parse(to proto.Message, text string) types.Resource {
	p.t.Helper()
	if err := protojson.Unmarshal([]byte(text), to); err != nil {
		p.t.Fatal(err)
	}
	return to
}

// FailoverBootstrap is a bootstrap with a second xDS server.
func FailoverBootstrap(t testing.TB, id, first, second string, delta bool) []byte {
	t.Helper()
	host, port, _ := net.SplitHostPort(second)
	text := string(Bootstrap(t, id, first, delta))
	text = strings.Replace(text, `[{"envoy_grpc": {"cluster_name": "ads"}}]`, `[{"envoy_grpc": {"cluster_name": "ads"}}, {"envoy_grpc": {"cluster_name": "second"}}]`, 1)
	at := strings.Index(text, `{"name": "ads"`)
	end := strings.LastIndex(text, "]}}")
	more := strings.NewReplacer(`"ads"`, `"second"`).Replace(text[at:end])
	firstHost, firstPort, _ := net.SplitHostPort(first)
	more = strings.Replace(more, fmt.Sprintf(`"address": %q, "port_value": %s`, firstHost, firstPort), fmt.Sprintf(`"address": %q, "port_value": %s`, host, port), 1)
	text = text[:end] + ", " + more + "]}," +
		`"layered_runtime": {"layers": [{"name": "static", "static_layer": {"envoy.restart_features.xds_failover_support": true}}]}}`
	if err := protojson.Unmarshal([]byte(text), &bootstrapv3.Bootstrap{}); err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

// Bootstrap is a bootstrap whose only xDS server is at an address.
func Bootstrap(t testing.TB, id, ads string, delta bool) []byte {
	t.Helper()
	host, port, _ := net.SplitHostPort(ads)
	kind := "GRPC"
	if delta {
		kind = "DELTA_GRPC"
	}
	text := fmt.Sprintf(`{"node": {"id": %q, "cluster": "edge"}, "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
		"dynamic_resources": {
			"ads_config": {"api_type": %q, "transport_api_version": "V3", "set_node_on_first_message_only": true, "grpc_services": [{"envoy_grpc": {"cluster_name": "ads"}}]},
			"cds_config": {"ads": {}, "resource_api_version": "V3"}, "lds_config": {"ads": {}, "resource_api_version": "V3"}},
		"static_resources": {"clusters": [{"name": "ads", "type": "STATIC", "connect_timeout": "1s", "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {"@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config": {"http2_protocol_options": {}}}},
			"load_assignment": {"cluster_name": "ads", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": %q, "port_value": %s}}}}]}]}}]}}`,
		id, kind, host, port)
	if err := protojson.Unmarshal([]byte(text), &bootstrapv3.Bootstrap{}); err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

// RelayTo writes a configuration with a relay to a control plane, and extra (YAML).
func (c *Coordinator) RelayTo(address, extra string) {
	c.t.Helper()
	c.write("hdsd.yaml", fmt.Sprintf("node_id: hdsd-test\ngrpc: {address: %q}\nhttp: {address: %q}\ndata_dir: data\n%s"+
		"relay: {upstream: {api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: %q, stat_prefix: x}}]}}}\n",
		c.GRPC, c.HTTP, FastReports+extra, address))
}
