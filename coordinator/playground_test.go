package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/rs/zerolog"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/check"
	"hdsd/eds"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// playground is a coordinator with everyone around it.
type playground struct {
	*site
	address string
	status  *atomic.Int32
	dir     string
	ctx     context.Context

	checkers []func() // stop them
	plane    discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	answer   *discoveryv3.DiscoveryResponse
	x        healthv3.HealthDiscoveryService_StreamHealthCheckClient
	watching context.CancelFunc
}

func newPlayground(t *testing.T) *playground {
	p := &playground{dir: t.TempDir(), ctx: t.Context()}
	p.address, p.status = upstream(t)
	p.site = &site{t: t}
	return p
}

// step is one thing done, and what it changes.
type step struct {
	name  string
	act   func()
	moves map[string]func(before, after float64) bool
}

// before is how things are; nothing before the start.
func (p *playground) before() scrape {
	if p.Coordinator == nil {
		return scrape{}
	}
	return p.scrape()
}

func (p *playground) steps() []step {
	type moves = map[string]func(before, after float64) bool
	return []step{
		{"hdsd starts", p.start, moves{
			"hdsd_build_info": rises, "hdsd_ready": rises, "hdsd_clusters": rises, "hdsd_endpoints": rises,
			"hdsd_endpoints_by_health{health=\"UNKNOWN\"}": rises, "hdsd_mailbox_wait_seconds": rises, "hdsd_plan_seconds": rises,
			"hdsd_history_bytes": rises, "hdsd_xds_resources": rises, "hdsd_http_requests_total{handler=\"/metrics\"}": rises,
			"hdsd_endpoints_stranded": rises, "hdsd_clusters_shadowed": rises, "hdsd_clusters_by_state{state=\"unobserved\"}": rises, "hdsd_redundancy": rises,
			"hdsd_cluster_endpoints{cluster=\"dark\"}": rises, "hdsd_cluster_endpoints_unobserved": rises, "hdsd_clusters_without_series": rises, "hdsd_files": rises, "hdsd_files_written_total": rises,
		}},
		{"checkers come", p.check, moves{
			"hdsd_checkers": rises, "hdsd_checkers_connected": rises, "hdsd_hds_streams": rises, "hdsd_endpoints_stranded": falls,
			"hdsd_hds_specifiers_sent_total": rises, "hdsd_specifiers_built_total": rises, "hdsd_plan_moves_total": rises,
			"hdsd_hds_reports_total{kind=\"unchanged\"}": rises, "hdsd_hds_votes_total": rises, "hdsd_verdict_delay_seconds": rises,
			"hdsd_transitions_total{to=\"HEALTHY\"}": rises, "hdsd_endpoints_by_health{health=\"HEALTHY\"}": rises,
			"hdsd_endpoints_by_voters{voters=\"3+\"}":                           rises,
			"hdsd_history_committed_total":                                      rises,
			"hdsd_grpc_server_started_total{grpc_method=\"StreamHealthCheck\"}": rises,
			"hdsd_grpc_server_msg_received_total":                               rises, "hdsd_grpc_server_msg_sent_total": rises,
		}},
		{"a data plane comes", p.subscribe, moves{
			"hdsd_xds_streams": rises, "hdsd_xds_subscriptions": rises, "hdsd_xds_responses_total": rises, "hdsd_xds_response_bytes_total": rises,
		}},
		{"it takes what it got", func() { p.reply(nil) }, moves{"hdsd_xds_acks_total": rises}},
		{"an endpoint fails", p.fail, moves{"hdsd_xds_push_delay_seconds": rises, "hdsd_endpoints_by_health{health=\"UNHEALTHY\"}": rises, "hdsd_clusters_by_state{state=\"all_down\"}": rises, "hdsd_cluster_endpoints_down": rises}},
		{"the data plane refuses that", func() { p.reply(&rpcstatus.Status{Message: "no"}) }, moves{"hdsd_xds_nacks_total": rises}},
		{"it asks for what is not served", p.askForListeners, moves{"hdsd_xds_parked_requests_total": rises}},
		{"another polls, twice", p.poll, moves{"hdsd_xds_fetches_total": rises, "hdsd_xds_fetches_unchanged_total": rises}},
		{"somebody asks", p.query, moves{"hdsd_grpc_server_handled_total{grpc_code=\"OK\"": rises, "hdsd_grpc_server_handling_seconds": rises}},
		{"somebody takes a backup", p.backup, moves{"hdsd_last_backup_timestamp_seconds": rises}},
		{"somebody watches", p.watch, moves{"hdsd_watch_subscribers": rises}},
		{"and stops", func() { p.watching() }, moves{"hdsd_watch_subscribers": falls}},
		{"operators drain an endpoint", p.drain, moves{
			"hdsd_overrides{kind=\"drain\"}": rises, "hdsd_endpoints_overridden": rises, "hdsd_endpoints_by_health{health=\"DRAINING\"}": rises,
		}},
		{"operators freeze", p.freeze, moves{"hdsd_frozen": rises}},
		{"a file is wrong", p.mistake, moves{"hdsd_quarantined": rises, "hdsd_source_problems": rises}},
		{"a checker comes that says nothing", func() { p.x = p.introduce("x", "a") }, moves{
			"hdsd_hds_silent_checkers_total": rises, "hdsd_hds_unaccepted_specifiers_total": rises, "hdsd_checkers_silent": rises, "hdsd_checkers_on_probation": rises,
		}},
		{"it tells of what it was not asked", p.strange, moves{"hdsd_hds_strange_entries_total": rises}},
		{"another has its name", p.impersonate, moves{"hdsd_hds_refused_streams_total": rises}},
		{"one comes that is not admitted", p.intrude, moves{"hdsd_hds_turned_away_total": rises}},
		{"it connects a second time", func() { p.introduce("x", "a") }, moves{"hdsd_hds_replaced_streams_total": rises}},
		{"a node fetches", func() {
			p.fetch(`{"health_check_request":{"node":{"id":"f"},"capability":{"health_check_protocols":["HTTP"]}}}`)
		}, moves{"hdsd_hds_fetches_total": rises}},
		{"a stranger reports", func() { p.fetch(`{"endpoint_health_response":{}}`) }, moves{"hdsd_hds_unbound_reports_total": rises}},
		{"a client begins a request", p.begin, moves{"hdsd_bytes_in_flight": rises}},
		{"a fetch lists far too much", func() {
			p.fetch(`{"endpoint_health_response":{"endpoints_health":[` + strings.Repeat("{},", 100_000) + `{}]}}`)
		}, moves{"hdsd_hds_refused_reports_total": rises}},
		{"somebody asks without a role", p.deny, moves{"hdsd_access_denied_total{mode=\"WARN\",role=\"VIEWER\"}": rises}},
		{"many more connect than may", p.crowd, moves{"hdsd_connections_refused_total": rises}},
		{"an endpoint flips", p.flip, moves{"hdsd_endpoints_paced": rises, "hdsd_changes_left_out_total": rises}},
		{"checkers go", p.leave, moves{"hdsd_checkers_connected": falls, "hdsd_checkers": falls}},
	}
}

// deny tries out grants under which nobody here has a role, and withdraws them.
func (p *playground) deny() {
	clusters := static("web", p.address) + static("dark", p.address)
	token := strings.Repeat("0", 64)
	for _, access := range []string{"access: {mode: WARN, grants: [{roles: [VIEWER], token_sha256: '" + token + "'}]}\n", ""} {
		if _, err := p.Reload(configuration(p.t, p.dir, playgroundText+access, clusters)); err != nil {
			p.t.Fatal(err)
		}
		if code, text := p.get("/v1/clusters"); code != http.StatusOK {
			p.t.Errorf("/v1/clusters: %d %s", code, text)
		}
	}
}

const playgroundText = quick + `
policies: [{cluster_name_glob: dark, mode: SHADOW, redundancy: 7}, {cluster_name_glob: "*", redundancy: 7}]  # every checker has work
limits: {max_connections: 50}
metrics: {cluster_name_globs: ["*"], max_clusters: 1}
checkers: {admit: [{node_id_glob: "c?"}, {node_id_glob: "?"}]}
data_planes: {eds_directory: eds}
`

func (p *playground) start() {
	p.site = newSite(p.t, p.dir, playgroundText, static("web", p.address)+static("dark", p.address))
	p.ready()
}

// check runs checkers until leave.
func (p *playground) check() {
	for _, id := range []string{"c1", "c2", "c3"} {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = check.Run(ctx, check.Options{Server: p.GRPCAddress(), NodeID: id, Locality: health.Locality{Zone: id}, Log: zerolog.Nop()})
		}()
		stop := func() { cancel(); <-done }
		p.t.Cleanup(stop)
		p.checkers = append(p.checkers, stop)
	}
}

func (p *playground) leave() {
	for _, stop := range p.checkers {
		stop()
	}
}

func (p *playground) subscribe() {
	var err error
	if p.plane, err = discoveryv3.NewAggregatedDiscoveryServiceClient(p.dial()).StreamAggregatedResources(p.ctx); err != nil {
		p.t.Fatal(err)
	}
	p.send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "plane"}, TypeUrl: resourcev3.EndpointType, ResourceNames: []string{"web"}})
	p.receive()
}

func (p *playground) send(r *discoveryv3.DiscoveryRequest) {
	if err := p.plane.Send(r); err != nil {
		p.t.Fatal(err)
	}
}

func (p *playground) receive() {
	var err error
	if p.answer, err = p.plane.Recv(); err != nil {
		p.t.Fatal(err)
	}
}

// reply takes or refuses the latest response.
func (p *playground) reply(refusal *rpcstatus.Status) {
	p.send(&discoveryv3.DiscoveryRequest{
		TypeUrl: resourcev3.EndpointType, ResourceNames: []string{"web"},
		VersionInfo: p.answer.GetVersionInfo(), ResponseNonce: p.answer.GetNonce(), ErrorDetail: refusal,
	})
}

func (p *playground) fail() {
	p.eventually("a healthy endpoint", func() bool { return p.healthOf("web", p.address) == "HEALTHY" })
	p.status.Store(http.StatusServiceUnavailable)
	p.receive()
}

func (p *playground) askForListeners() {
	p.send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.ListenerType})
}

func (p *playground) query() {
	if _, err := hdsdv1.NewQueryClient(p.dial()).ListClusters(p.ctx, &hdsdv1.ListClustersRequest{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *playground) backup() {
	parts, err := hdsdv1.NewControlClient(p.dial()).Backup(p.ctx, &hdsdv1.BackupRequest{})
	for err == nil {
		_, err = parts.Recv()
	}
	if !errors.Is(err, io.EOF) {
		p.t.Fatal(err)
	}
}

func (p *playground) watch() {
	var ctx context.Context
	ctx, p.watching = context.WithCancel(p.ctx)
	stream, err := hdsdv1.NewQueryClient(p.dial()).Watch(ctx, &hdsdv1.WatchRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *playground) drain() {
	if _, err := hdsdv1.NewControlClient(p.dial()).SetOverride(p.ctx, &hdsdv1.SetOverrideRequest{
		Cluster: "dark", Address: p.address, Health: corev3.HealthStatus_DRAINING, Reason: "a test",
	}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *playground) freeze() {
	if _, err := hdsdv1.NewControlClient(p.dial()).Freeze(p.ctx, &hdsdv1.FreezeRequest{Reason: "a test", Author: "somebody"}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *playground) mistake() {
	move(p.t, p.dir, "clusters.yaml", "resources:\n"+static("web", p.address)+static("dark", p.address, "db.internal:80")+
		"- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: bad, nonsense: 1}\n")
}

// flip has an endpoint fail and come back so often that not each change is recorded.
func (p *playground) flip() {
	if err := p.WithoutSpareChanges(p.ctx); err != nil {
		p.t.Fatal(err)
	}
	p.eventually("changes to be left out", func() bool {
		now, next := "HEALTHY", int32(http.StatusServiceUnavailable)
		if p.status.Load() != http.StatusOK {
			now, next = "UNHEALTHY", http.StatusOK
		}
		_, text := p.get("/v1/endpoints?cluster=web")
		if p.healthOf("web", p.address) == now || strings.Contains(text, "it changes too often, so "+now) {
			p.status.Store(next)
		}
		return p.scrape().sum("hdsd_changes_left_out_total") > 0
	})
}

// impersonate has another node take the name of a checker that is heard.
func (p *playground) impersonate() {
	p.eventually("an impostor to be refused", func() bool {
		impostor := p.introduce("c1", "elsewhere")
		_, err := impostor.Recv()
		_ = impostor.CloseSend() // where it was taken for the checker, come back from a pause
		return status.Code(err) == codes.AlreadyExists
	})
}

// intrude has a checker come that no rule admits.
func (p *playground) intrude() {
	p.eventually("an intruder to be refused", func() bool {
		_, err := p.introduce("intruder", "a").Recv()
		return status.Code(err) == codes.PermissionDenied
	})
}

// introduce is the first message of a checker in a zone.
func (p *playground) introduce(id, zone string) healthv3.HealthDiscoveryService_StreamHealthCheckClient {
	stream, err := healthv3.NewHealthDiscoveryServiceClient(p.dial()).StreamHealthCheck(p.ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := stream.Send(&healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
		HealthCheckRequest: &healthv3.HealthCheckRequest{
			Node:       &corev3.Node{Id: id, Locality: &corev3.Locality{Zone: zone}},
			Capability: &healthv3.Capability{HealthCheckProtocols: []healthv3.Capability_Protocol{healthv3.Capability_HTTP}},
		},
	}}); err != nil {
		p.t.Fatal(err)
	}
	return stream
}

func (p *playground) strange() {
	if err := p.x.Send(&healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{
		EndpointHealthResponse: &healthv3.EndpointHealthResponse{ClusterEndpointsHealth: []*healthv3.ClusterEndpointsHealth{{
			ClusterName: "nowhere",
			LocalityEndpointsHealth: []*healthv3.LocalityEndpointsHealth{{EndpointsHealth: []*healthv3.EndpointHealth{{
				Endpoint:     &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "192.0.2.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 1}}}}},
				HealthStatus: corev3.HealthStatus_HEALTHY,
			}}}},
		}}},
	}}); err != nil {
		p.t.Fatal(err)
	}
}

// crowd leaves more connections open than are taken.
func (p *playground) crowd() {
	for range 60 {
		connection, err := net.Dial("tcp", p.GRPCAddress())
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { connection.Close() })
	}
}

// begin sends a part of a request.
func (p *playground) begin() {
	c, err := net.Dial("tcp", p.HTTPAddress())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", eds.EndpointsPath); err != nil {
		p.t.Fatal(err)
	}
}

func (p *playground) fetch(body string) { p.post("/v3/discovery:health_check", body) }

// poll asks for an assignment, and again with the version that it has then.
func (p *playground) poll() {
	var first discoveryv3.DiscoveryResponse
	if err := protojson.Unmarshal(p.post(eds.EndpointsPath, `{"resource_names":["web"]}`), &first); err != nil {
		p.t.Fatal(err)
	}
	p.post(eds.EndpointsPath, fmt.Sprintf(`{"resource_names":["web"],"version_info":%q}`, first.GetVersionInfo()))
}

func (s *site) post(path, body string) []byte {
	answer, err := http.Post(fmt.Sprintf("http://%s%s", s.HTTPAddress(), path), "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}
