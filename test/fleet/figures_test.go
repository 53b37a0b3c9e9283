package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// quantile returns the q-th quantile of durations, in ms.
func quantile(durations []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(durations))
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Microseconds()) / 1000
}

// BenchmarkDetection measures from the moment an upstream starts failing (500)
// to the moment a data-plane Envoy marks it: three real Envoys check every
// 0.5 s and report every 0.25 s.
func BenchmarkDetection(b *testing.B) {
	const rounds = 20
	ups := Upstreams(b, 3, upstream.Options{})
	check := `{timeout: 0.3s, interval: 0.5s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /healthz}}`
	c := Prepare(b, ClusterFile(StaticCluster("web", check, Addresses(ups))), FastReports)
	c.Start()
	Checkers(b, c, 3)
	plane := DataPlanes(b, c, "web")[0]
	c.AwaitAllHealthy("web", Addresses(ups), []*envoy.Process{plane})
	for b.Loop() {
		var out, back []time.Duration
		for i := range rounds {
			victim := ups[i%len(ups)]
			// The failure starts at any point of the checkers' rounds.
			waitFor(time.Duration(i) * 137 * time.Millisecond % (500 * time.Millisecond))
			started := time.Now()
			set(b, victim, upstream.Status(500))
			AwaitPlane(b, plane, "web", victim.Addr(), "UNHEALTHY")
			out = append(out, time.Since(started))
			started = time.Now()
			set(b, victim, upstream.Healthy())
			AwaitPlane(b, plane, "web", victim.Addr(), "HEALTHY")
			back = append(back, time.Since(started))
		}
		b.ReportMetric(quantile(out, 0.5), "out-median-ms")
		b.ReportMetric(quantile(out, 1), "out-worst-ms")
		b.ReportMetric(quantile(back, 0.5), "back-median-ms")
		b.ReportMetric(quantile(back, 1), "back-worst-ms")
	}
}

// BenchmarkKill9 is TestKill9WithFlipsInFlight with twenty restarts.
func BenchmarkKill9(b *testing.B) {
	for b.Loop() {
		killRounds(b, 20)
	}
}

// BenchmarkOwnShare measures hdsd's own part: from the report with a flip on
// the wire to the EDS push on the wire, for one subscriber, beside an echo of
// the same bytes over gRPC.
func BenchmarkOwnShare(b *testing.B) {
	const flips, endpoints = 1000, 100
	var addresses []string
	for i := range endpoints {
		addresses = append(addresses, fmt.Sprintf("127.0.1.%d:9", i+1))
	}
	c := Prepare(b, ClusterFile(StaticCluster("web", CheckTCP, addresses)), "assignment: {redundancy: 1, settle: 0.1s}\nreporting: {interval: 60s}\n")
	c.Start()
	connection, err := grpc.NewClient(c.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close()
	checker := newFakeChecker(b, connection)
	subscriber := newSubscriber(b, connection, "web")
	echo := startEcho(b)
	for b.Loop() {
		var own, floor []time.Duration
		for i := range flips {
			status := corev3.HealthStatus_UNHEALTHY
			if i%2 == 1 {
				status = corev3.HealthStatus_HEALTHY
			}
			report := checker.report(i/2%endpoints, status)
			started := time.Now()
			checker.send(b, report)
			pushed := subscriber.receive(b)
			own = append(own, time.Since(started))
			subscriber.acknowledge(b, pushed)
			started = time.Now()
			echo.roundTrip(b, report, pushed)
			floor = append(floor, time.Since(started))
		}
		b.ReportMetric(quantile(own, 0.5), "p50-ms")
		b.ReportMetric(quantile(own, 0.99), "p99-ms")
		b.ReportMetric(quantile(floor, 0.5), "echo-p50-ms")
		b.ReportMetric(quantile(floor, 0.99), "echo-p99-ms")
		b.ReportMetric(quantile(own, 0.5)/quantile(floor, 0.5), "p50/echo")
	}
}

// fakeChecker reports what it is told to.
type fakeChecker struct {
	stream    healthv3.HealthDiscoveryService_StreamHealthCheckClient
	specifier *healthv3.HealthCheckSpecifier
	statuses  []corev3.HealthStatus
}

func newFakeChecker(b *testing.B, connection *grpc.ClientConn) *fakeChecker {
	b.Helper()
	stream, err := healthv3.NewHealthDiscoveryServiceClient(connection).StreamHealthCheck(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	node := &corev3.Node{Id: "fake", UserAgentName: "hdsd"}
	capability := &healthv3.Capability{HealthCheckProtocols: []healthv3.Capability_Protocol{healthv3.Capability_HTTP, healthv3.Capability_TCP}}
	k := &fakeChecker{stream: stream}
	k.send(b, &healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
		HealthCheckRequest: &healthv3.HealthCheckRequest{Node: node, Capability: capability},
	}})
	for len(k.specifier.GetClusterHealthChecks()) == 0 {
		if k.specifier, err = stream.Recv(); err != nil {
			b.Fatal(err)
		}
	}
	for _, group := range k.specifier.GetClusterHealthChecks()[0].GetLocalityEndpoints() {
		for range group.GetEndpoints() {
			k.statuses = append(k.statuses, corev3.HealthStatus_HEALTHY)
		}
	}
	k.send(b, k.report(0, corev3.HealthStatus_HEALTHY))
	return k
}

// report is a full report in which the i-th endpoint has a status.
func (k *fakeChecker) report(i int, status corev3.HealthStatus) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	k.statuses[i] = status
	report := &healthv3.EndpointHealthResponse{}
	next := 0
	for _, cluster := range k.specifier.GetClusterHealthChecks() {
		nested := &healthv3.ClusterEndpointsHealth{ClusterName: cluster.GetClusterName()}
		for _, group := range cluster.GetLocalityEndpoints() {
			here := &healthv3.LocalityEndpointsHealth{Locality: group.GetLocality()}
			for _, e := range group.GetEndpoints() {
				h := &healthv3.EndpointHealth{Endpoint: &endpointv3.Endpoint{Address: e.GetAddress()}, HealthStatus: k.statuses[next]}
				next++
				report.EndpointsHealth = append(report.EndpointsHealth, h)
				here.EndpointsHealth = append(here.EndpointsHealth, h)
			}
			nested.LocalityEndpointsHealth = append(nested.LocalityEndpointsHealth, here)
		}
		report.ClusterEndpointsHealth = append(report.ClusterEndpointsHealth, nested)
	}
	return &healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{EndpointHealthResponse: report}}
}

func (k *fakeChecker) send(b *testing.B, m *healthv3.HealthCheckRequestOrEndpointHealthResponse) {
	b.Helper()
	if err := k.stream.Send(m); err != nil {
		b.Fatal(err)
	}
}

// fakeSubscriber takes assignments over delta ADS.
type fakeSubscriber struct {
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

// newSubscriber subscribes and waits until everything is healthy.
func newSubscriber(b *testing.B, connection *grpc.ClientConn, name string) *fakeSubscriber {
	b.Helper()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	s := &fakeSubscriber{stream: stream}
	if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "dp"}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{name}}); err != nil {
		b.Fatal(err)
	}
	for healthy := false; !healthy; {
		response := s.receive(b)
		s.acknowledge(b, response)
		healthy = allHealthy(b, response)
	}
	return s
}

func allHealthy(b *testing.B, response *discoveryv3.DeltaDiscoveryResponse) bool {
	b.Helper()
	for _, r := range response.GetResources() {
		var a endpointv3.ClusterLoadAssignment
		if err := r.GetResource().UnmarshalTo(&a); err != nil {
			b.Fatal(err)
		}
		for _, group := range a.GetEndpoints() {
			for _, e := range group.GetLbEndpoints() {
				if e.GetHealthStatus() != corev3.HealthStatus_HEALTHY {
					return false
				}
			}
		}
	}
	return len(response.GetResources()) > 0
}

func (s *fakeSubscriber) receive(b *testing.B) *discoveryv3.DeltaDiscoveryResponse {
	b.Helper()
	response, err := s.stream.Recv()
	if err != nil {
		b.Fatal(err)
	}
	return response
}

func (s *fakeSubscriber) acknowledge(b *testing.B, r *discoveryv3.DeltaDiscoveryResponse) {
	b.Helper()
	if err := s.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: r.GetNonce()}); err != nil {
		b.Fatal(err)
	}
}
