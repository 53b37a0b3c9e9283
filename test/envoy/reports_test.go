package envoy

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy/specifier"
	"hdsd/health"
)

// reportedEntries gives the addresses in a report as text, and which are up.
func reportedEntries(r *healthv3.EndpointHealthResponse) (entries []string, up []bool) {
	for _, c := range r.GetClusterEndpointsHealth() {
		for _, l := range c.GetLocalityEndpointsHealth() {
			for _, e := range l.GetEndpointsHealth() {
				text := e.GetEndpoint().GetAddress().GetPipe().GetPath()
				if s := e.GetEndpoint().GetAddress().GetSocketAddress(); s != nil {
					text = net.JoinHostPort(s.GetAddress(), strconv.Itoa(int(s.GetPortValue())))
				}
				entries = append(entries, text)
				up = append(up, e.GetHealthStatus() == corev3.HealthStatus_HEALTHY)
			}
		}
	}
	return entries, up
}

// build joins clusters into what one checker is sent.
func build(clusters ...*specifier.Cluster) *specifier.Specifier {
	var items []specifier.Item
	for _, c := range clusters {
		for i := range c.Endpoints {
			items = append(items, specifier.Item{Cluster: c, Endpoint: i, ID: health.EndpointID(len(items))})
		}
	}
	return specifier.Build(items, 50*time.Millisecond)
}

// TestReportsSayWhatIsExpected sends every form of an address, and finds the
// report to be as the specifier says that it will be.
func TestReportsSayWhatIsExpected(t *testing.T) {
	l := newLab(t)
	assignment, checks := &endpointv3.ClusterLoadAssignment{}, []*corev3.HealthCheck{SoundCheck()}
	for i, addresses := range [][]string{
		{"127.0.0.1", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::127.0.0.1", "2001:DB8::0:1", "2001:db8:0:1:1:1:1:1", "::", "64:ff9b::1.2.3.4", "::5", "::5:6", "::FFFF:c000:201", "::c000:202"},
		{"127.0.0.3", "127.0.0.2"},
	} {
		locality := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: fmt.Sprint(9 - i)}}
		for _, address := range addresses {
			locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: endpointOf(net.JoinHostPort(address, "9"))}})
		}
		assignment.Endpoints = append(assignment.Endpoints, locality)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "s"), "@abstract", "relative"} {
		e := &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path, Mode: 0o600}}}}
		assignment.Endpoints[0].LbEndpoints = append(assignment.Endpoints[0].LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: e}})
	}
	all := specifier.Options{Targets: specifier.Targets{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}}
	web := specifier.Translate("web", nil, assignment, checks, all)
	other := specifier.Translate("api", nil, assignment, checks, all)
	spec := build(web, other)
	checker := l.subject(t, "")
	checker.out <- spec.Message()
	Eventually(t, patience, "a full report", func() bool {
		entries, _ := reportedEntries(checker.report.Load())
		return len(entries) == len(spec.Order)
	})
	entries, _ := reportedEntries(checker.report.Load())
	if len(web.Excluded) > 0 || !slices.Equal(entries, spec.Addresses) {
		t.Errorf("reported:\n%q, expected:\n%q; quarantined: %v", entries, spec.Addresses, web.Excluded)
	}
}

// TestSocketsAreAsTheDataPlaneChoosesThem has endpoints with TLS and without
// in one cluster, told apart by metadata and criteria: all are found healthy,
// which they would not be through the wrong socket.
func TestSocketsAreAsTheDataPlaneChoosesThem(t *testing.T) {
	l := newLab(t)
	labels := func(value string) *structpb.Struct {
		return &structpb.Struct{Fields: map[string]*structpb.Value{"tls": structpb.NewStringValue(value)}}
	}
	metadata := func(value string) *corev3.Metadata {
		return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.transport_socket_match": labels(value)}}
	}
	endpoint := func(e *endpointv3.Endpoint, m *corev3.Metadata) *endpointv3.LbEndpoint {
		return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: e}, Metadata: m}
	}
	socket := tlsSocket(soundContext())
	matches := []*clusterv3.Cluster_TransportSocketMatch{{Name: "tls", Match: labels("yes"), TransportSocket: socket}}
	plainCheck := SoundCheck
	with := func(criteria *structpb.Struct) *corev3.HealthCheck {
		check := plainCheck()
		check.TransportSocketMatchCriteria = criteria
		return check
	}
	assignment := func(m *corev3.Metadata, endpoints ...*endpointv3.LbEndpoint) *endpointv3.ClusterLoadAssignment {
		return &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: endpoints, Metadata: m}}}
	}
	tcp := func() *corev3.HealthCheck {
		check := SoundCheck()
		check.HealthChecker = &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}}
		return check
	}
	var none specifier.Options
	spec := build(
		specifier.Translate("by-metadata", &clusterv3.Cluster{TransportSocketMatches: matches},
			assignment(nil, endpoint(l.bench.Secure, metadata("yes")), endpoint(l.bench.Plain, metadata("no"))), []*corev3.HealthCheck{plainCheck()}, none),
		specifier.Translate("by-locality", &clusterv3.Cluster{TransportSocketMatches: matches},
			assignment(metadata("yes"), endpoint(l.bench.Secure, nil)), []*corev3.HealthCheck{plainCheck()}, none),
		specifier.Translate("own-socket", &clusterv3.Cluster{TransportSocket: socket}, assignment(nil, endpoint(l.bench.Secure, nil)), []*corev3.HealthCheck{plainCheck()}, none),
		specifier.Translate("no-match-own-socket", &clusterv3.Cluster{TransportSocketMatches: matches, TransportSocket: socket},
			assignment(nil, endpoint(l.bench.Secure, metadata("no"))), []*corev3.HealthCheck{plainCheck()}, none),
		specifier.Translate("by-criteria", &clusterv3.Cluster{TransportSocketMatches: matches},
			assignment(nil, endpoint(l.bench.Secure, metadata("no"))), []*corev3.HealthCheck{with(labels("yes"))}, none),
		specifier.Translate("by-criteria-plain", &clusterv3.Cluster{TransportSocketMatches: matches},
			assignment(nil, endpoint(l.bench.Plain, metadata("yes"))), []*corev3.HealthCheck{with(labels("no"))}, none),
		specifier.Translate("plain", nil, assignment(nil, endpoint(l.bench.Plain, nil)), []*corev3.HealthCheck{plainCheck()}, none),
		specifier.Translate("two-checks-one-of-them-plain", &clusterv3.Cluster{TransportSocketMatches: matches},
			assignment(nil, endpoint(l.bench.Secure, nil)), []*corev3.HealthCheck{with(labels("yes")), tcp()}, none),
		specifier.Translate("two-checks-the-plain-one-first", &clusterv3.Cluster{TransportSocketMatches: matches},
			assignment(nil, endpoint(l.bench.Secure, nil)), []*corev3.HealthCheck{tcp(), with(labels("yes"))}, none),
	)
	if len(spec.Order) != 10 {
		t.Fatalf("%d endpoints are checked, want 10", len(spec.Order))
	}
	checker := l.subject(t, "")
	checker.out <- spec.Message()
	if !Await(patience, func() bool {
		_, up := reportedEntries(checker.report.Load())
		return len(up) == len(spec.Order) && !slices.Contains(up, false)
	}) {
		t.Errorf("not all are found healthy: %v", checker.report.Load().GetClusterEndpointsHealth())
	}
}
