package coordinator_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/test/envoy"
)

// loads is a control plane's service for load reports. It asks for those of all clusters.
type loads struct {
	loadstatsv3.UnimplementedLoadReportingServiceServer

	mu     sync.Mutex        // guards what follows
	issued map[string]uint64 // requests, by node and cluster
	tokens map[string]bool
}

func (l *loads) StreamLoadStats(stream loadstatsv3.LoadReportingService_StreamLoadStatsServer) error {
	node := ""
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		l.mu.Lock()
		if l.issued == nil {
			l.issued, l.tokens = map[string]uint64{}, map[string]bool{}
		}
		for _, token := range metadata.ValueFromIncomingContext(stream.Context(), "authorization") {
			l.tokens[token] = true
		}
		if r.GetNode().GetId() != "" {
			node = r.GetNode().GetId()
		}
		for _, k := range r.GetClusterStats() {
			for _, locality := range k.GetUpstreamLocalityStats() {
				l.issued[node+" "+k.GetClusterName()] += locality.GetTotalIssuedRequests()
			}
		}
		l.mu.Unlock()
		if err := stream.Send(&loadstatsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(50 * time.Millisecond)}); err != nil {
			return err
		}
	}
}

func (l *loads) of(node, cluster string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.issued[node+" "+cluster]
}

// report opens a stream for load reports.
func (s *site) report(token string) grpc.BidiStreamingClient[loadstatsv3.LoadStatsRequest, loadstatsv3.LoadStatsResponse] {
	s.t.Helper()
	stream, err := loadstatsv3.NewLoadReportingServiceClient(s.dial()).StreamLoadStats(metadata.AppendToOutgoingContext(s.t.Context(), "authorization", token))
	if err == nil {
		err = stream.Send(&loadstatsv3.LoadStatsRequest{Node: &corev3.Node{Id: "edge-1"}})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return stream
}

// TestLoadReportsAreRelayed covers the identity by relay.forward. The streams end like others while the
// control plane is away, with UNAVAILABLE.
func TestLoadReportsAreRelayed(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.loads = &loads{}
	m.come()
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
	s := newSite(t, t.TempDir(), relaying(m, ", forward: AUTHORIZATION"), "")
	s.ready()
	c := newClient(t, s.dialWith("x"), true, "edge-1") // it is remembered
	c.talker.ask(resourcev3.ClusterType, nil, nil)
	go c.run()
	s.eventually("its clusters", func() bool { return c.cluster("web") != nil })
	stream := s.report("Bearer x")
	if r, err := stream.Recv(); err != nil || !r.GetSendAllClusters() {
		t.Fatalf("the answer is %v, %v", r, err)
	}
	s.eventually("the count", func() bool { return s.scrape().sum("hdsd_relay_load_reports_total") == 1 })
	m.loads.mu.Lock()
	if len(m.loads.tokens) != 1 || !m.loads.tokens["Bearer x"] {
		t.Errorf("the control plane got the tokens %v", m.loads.tokens)
	}
	m.loads.mu.Unlock()
	m.leave()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("when the control plane goes, the stream ends with %v", err)
	}
	if _, err := s.report("Bearer x").Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("while the control plane is away, a stream ends with %v", err)
	}
	m.loads = nil
	m.come()
	s.eventually("the refusal of a control plane that takes none", func() bool {
		_, err := s.report("Bearer x").Recv()
		return status.Code(err) == codes.Unimplemented
	})
}

// TestEnvoyReportsLoad covers an Envoy behind the relay.
func TestEnvoyReportsLoad(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	m := newManagement(t)
	m.loads = &loads{}
	m.come()
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.ready()
	listen := envoy.FreeAddress(t)
	socket := func(address string) string {
		host, port, _ := strings.Cut(address, ":")
		return fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port)
	}
	cluster := func(name, address, more string) string {
		return fmt.Sprintf("  - {name: %s, type: STATIC, connect_timeout: 1s, load_assignment: {cluster_name: %s, endpoints: [{locality: {zone: a}, lb_endpoints: [{endpoint: {address: %s}}]}]}%s}\n",
			name, name, socket(address), more)
	}
	edge := envoy.Start(t, "", "edge-1", []byte("node: {id: edge-1, cluster: edge}\nadmin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"+
		"cluster_manager: {load_stats_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: hdsd}}]}}\n"+
		"static_resources:\n  clusters:\n"+cluster("web", address, "")+
		cluster("hdsd", s.dial().Target(), `, typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}`)+
		"  listeners:\n  - {name: web, address: "+socket(listen)+", filter_chains: [{filters: [{name: http, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: web, "+
		"route_config: {virtual_hosts: [{name: web, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: web}}]}]}, "+
		"http_filters: [{name: router, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]}\n"))
	requests := uint64(0)
	s.eventually("its load reports", func() bool { // what was before the control plane asked for them is in none
		r, err := http.Get("http://" + listen + "/healthz")
		if err != nil {
			return false
		}
		r.Body.Close()
		requests++
		return m.loads.of("edge-1", "web") > 0
	})
	if got := m.loads.of("edge-1", "web"); got > requests {
		t.Errorf("it reports %d requests, and %d were made", got, requests)
	}
	if got := edge.Stats(t, "load_reporter")["load_reporter.errors"]; got != 0 {
		t.Errorf("it counts %d errors", got)
	}
}

// TestUnreadLoadReports covers load reports that do not hold up the configuration, since they use another
// connection. Like several HTTP/2 servers, this control plane has one window for all streams of a connection,
// and unread reports fill it.
func TestUnreadLoadReports(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	unread := make(chan struct{}) // a stream of reports is open
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, gcp.NewServer(t.Context(), m.cache, nil))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/StreamLoadStats") {
			close(unread)
			<-r.Context().Done()
			return
		}
		server.ServeHTTP(w, r)
	})
	h2 := &http2.Server{MaxUploadBufferPerConnection: 1 << 16, MaxUploadBufferPerStream: 1 << 16}
	plane := &http.Server{Addr: m.address, Handler: h2c.NewHandler(handler, h2)} //nolint:gosec // on loopback
	listener, err := net.Listen("tcp", m.address)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = plane.Serve(listener) }()
	t.Cleanup(func() { plane.Close() })
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.ready()
	stream := s.report("Bearer x")
	<-unread
	large := &loadstatsv3.LoadStatsRequest{ClusterStats: []*endpointv3.ClusterStats{{ClusterName: strings.Repeat("x", 1<<17)}}}
	if err := stream.Send(large); err != nil {
		t.Fatal(err)
	}
	s.eventually("the report on its way", func() bool { return s.scrape().sum("hdsd_relay_load_reports_total") == 2 })
	c := s.client(true, "edge-2", "web")
	s.eventually("the clusters of another client", func() bool { return c.cluster("web") != nil })
}
