package scale

import (
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
)

// composed is the report in which all endpoints are up, as a message.
func composed(s *healthv3.HealthCheckSpecifier, down func(address string) bool) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	all := &healthv3.EndpointHealthResponse{}
	for _, cluster := range s.GetClusterHealthChecks() {
		of := &healthv3.ClusterEndpointsHealth{ClusterName: cluster.GetClusterName()}
		for _, group := range cluster.GetLocalityEndpoints() {
			in := &healthv3.LocalityEndpointsHealth{Locality: group.GetLocality()}
			for _, e := range group.GetEndpoints() {
				is := healthOf(e.GetAddress(), corev3.HealthStatus_HEALTHY, answersUp)
				if down(e.GetAddress().GetSocketAddress().GetAddress()) {
					is = healthOf(e.GetAddress(), corev3.HealthStatus_UNHEALTHY, answersDown)
				}
				in.EndpointsHealth = append(in.EndpointsHealth, is)
			}
			all.EndpointsHealth = append(all.EndpointsHealth, in.GetEndpointsHealth()...)
			of.LocalityEndpointsHealth = append(of.LocalityEndpointsHealth, in)
		}
		all.ClusterEndpointsHealth = append(all.ClusterEndpointsHealth, of)
	}
	return &healthv3.HealthCheckRequestOrEndpointHealthResponse{
		RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{EndpointHealthResponse: all},
	}
}

// TestReportsSayWhatEnvoyWouldSay: their bytes are those of the message, before and after endpoints
// fail.
func TestReportsSayWhatEnvoyWouldSay(t *testing.T) {
	const each = 300
	w := newWorld(4, each)
	s := &healthv3.HealthCheckSpecifier{}
	for cluster := range 4 {
		k := &healthv3.ClusterHealthCheck{ClusterName: clusterName(cluster)}
		for group := range 2 {
			in := &healthv3.LocalityEndpoints{}
			if group > 0 {
				in.Locality = &corev3.Locality{Region: "eu", Zone: "a"}
			}
			for i := range 45 * cluster { // of one cluster none
				in.Endpoints = append(in.Endpoints, &endpointv3.Endpoint{Address: addressOf(cluster*each + group*each/2 + i)})
			}
			k.LocalityEndpoints = append(k.LocalityEndpoints, in)
		}
		s.ClusterHealthChecks = append(s.ClusterHealthChecks, k)
	}
	r, err := newReport(w, s)
	if err != nil {
		t.Fatal(err)
	}
	same := func(when string, down ...int) {
		t.Helper()
		want := composed(s, func(ip string) bool {
			return slices.ContainsFunc(down, func(e int) bool { return addressOf(e).GetSocketAddress().GetAddress() == ip })
		})
		got := &healthv3.HealthCheckRequestOrEndpointHealthResponse{}
		if err := proto.Unmarshal(r.next(), got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: the report says %v (%v), want %v", when, got, err, want)
		}
		if len(r.now) != proto.Size(want) {
			t.Errorf("%s: the report has %d bytes, want %d", when, len(r.now), proto.Size(want))
		}
	}
	same("all are up")
	w.flip(each + 7)
	w.flip(3*each + 100)
	same("two are down", each+7, 3*each+100)
	w.flip(each + 7)
	same("one is up again", 3*each+100)
	if _, err := newReport(newWorld(1, 1), s); err == nil {
		t.Error("a report on endpoints that are not in the world")
	}
}
