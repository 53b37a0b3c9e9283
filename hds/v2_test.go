package hds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev2 "github.com/envoyproxy/go-control-plane/envoy/api/v2/core"
	endpointv2 "github.com/envoyproxy/go-control-plane/envoy/api/v2/endpoint"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/hds"
)

func helloV2(node *corev2.Node) *discoveryv2.HealthCheckRequestOrEndpointHealthResponse {
	return &discoveryv2.HealthCheckRequestOrEndpointHealthResponse{
		RequestType: &discoveryv2.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
			HealthCheckRequest: &discoveryv2.HealthCheckRequest{Node: node, Capability: &discoveryv2.Capability{
				HealthCheckProtocols: []discoveryv2.Capability_Protocol{discoveryv2.Capability_TCP, discoveryv2.Capability_REDIS},
			}},
		},
	}
}

type saidV2 struct {
	address string
	status  corev2.HealthStatus
}

func reportV2(entries ...saidV2) *discoveryv2.HealthCheckRequestOrEndpointHealthResponse {
	r := &discoveryv2.EndpointHealthResponse{}
	for _, e := range entries {
		r.EndpointsHealth = append(r.EndpointsHealth, &discoveryv2.EndpointHealth{
			HealthStatus: e.status,
			Endpoint: &endpointv2.Endpoint{Address: &corev2.Address{Address: &corev2.Address_SocketAddress{SocketAddress: &corev2.SocketAddress{
				Address: e.address, PortSpecifier: &corev2.SocketAddress_PortValue{PortValue: 80},
			}}}},
		})
	}
	return &discoveryv2.HealthCheckRequestOrEndpointHealthResponse{
		RequestType: &discoveryv2.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{EndpointHealthResponse: r},
	}
}

func nodeV2(id string) *corev2.Node {
	return &corev2.Node{Id: id, Locality: &corev2.Locality{Zone: "z1"}, BuildVersion: "0a1b/1.13.1/Clean/RELEASE/BoringSSL"} //nolint:staticcheck // as old Envoys do
}

func specifierTextV2(m *discoveryv2.HealthCheckSpecifier) string {
	var text strings.Builder
	fmt.Fprintf(&text, "every %s:", m.GetInterval().AsDuration())
	for _, c := range m.GetClusterHealthChecks() {
		fmt.Fprintf(&text, " %s", c.GetClusterName())
		for _, check := range c.GetHealthChecks() {
			fmt.Fprintf(&text, "/%s", check.GetHttpHealthCheck().GetPath())
		}
		for _, l := range c.GetLocalityEndpoints() {
			for _, e := range l.GetEndpoints() {
				fmt.Fprintf(&text, " %s", e.GetAddress().GetSocketAddress().GetAddress())
			}
		}
	}
	return text.String()
}

// title is the name of a cluster in the log.
type title string

// MarshalZerologObject implements zerolog.LogObjectMarshaler.
func (n title) MarshalZerologObject(e *zerolog.Event) { e.Str("cluster", "as users know "+string(n)) }

func TestStreamOfV2(t *testing.T) {
	named := func(own string) zerolog.LogObjectMarshaler { return title(own) }
	bubble(t, hds.Options{Interval: time.Second, Named: named}, func(f *fixture) {
		stream, err := discoveryv2.NewHealthDiscoveryServiceClient(f.dial("10.1.0.1")).StreamHealthCheck(f.ctx)
		if err != nil {
			t.Fatal(err)
		}
		say := func(m *discoveryv2.HealthCheckRequestOrEndpointHealthResponse) {
			if err := stream.Send(m); err != nil {
				t.Fatal(err)
			}
		}
		say(helloV2(nodeV2("a")))
		same(t, "calls", f.sink.take(), "connected a")
		c := f.server.Checkers()[0]
		if c.Version != "envoy/1.13.1" || c.Locality.Zone != "z1" || !c.Abilities.Has("TCP") || c.Abilities.Has("HTTP") || c.Abilities.Has("REDIS") {
			t.Errorf("the checker is %+v", c)
		}
		spec := assignment(checked{5, "secure/a/10.0.0.5:80"}, checked{1, web1}, checked{2, web2})
		spec.Clusters[0].Head.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{{Name: "tls"}}
		spec.Clusters[1].Head.HealthChecks = []*corev3.HealthCheck{httpCheck("/ok")}
		for range 2 {
			f.server.Assign("a", spec)
			f.sink.take()
		}
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if text := specifierTextV2(got); text != "every 1s: web//ok 10.0.0.1 10.0.0.2" {
			t.Errorf("sent %s", text)
		}
		if text := f.log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"cluster":"as users know secure"`) || !strings.Contains(text, "no field 4") {
			t.Errorf("logged %s", text)
		}
		if n := f.counted("hdsd_hds_v2_left_out_clusters_total"); n != 2 {
			t.Errorf("%v are counted", n)
		}
		say(reportV2(saidV2{"10.0.0.1", corev2.HealthStatus_HEALTHY}, saidV2{"10.0.0.2", corev2.HealthStatus_TIMEOUT}))
		same(t, "calls", f.sink.take(), "reported a 1=HEALTHY 2=TIMEOUT")
		f.is(hds.NotSent, 0) // not all of it
		say(reportV2(saidV2{"10.0.0.1", corev2.HealthStatus_HEALTHY}, saidV2{"10.0.0.2", corev2.HealthStatus_TIMEOUT}))
		same(t, "calls", f.sink.take(), "reported a")
		say(reportV2(saidV2{"10.0.0.2", corev2.HealthStatus_HEALTHY}))
		same(t, "calls of one that says less", f.sink.take(), "reported a 2=HEALTHY")
		f.server.Assign("a", assignment(checked{1, web1}, checked{2, web2}))
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		say(reportV2(saidV2{"10.0.0.1", corev2.HealthStatus_HEALTHY}, saidV2{"10.0.0.2", corev2.HealthStatus_HEALTHY}))
		same(t, "calls", f.sink.take(), "reported a 1=HEALTHY 2=HEALTHY")
		f.is(hds.Synced, 0)
	})
}

func TestFetchOfV2(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		client := discoveryv2.NewHealthDiscoveryServiceClient(f.dial("10.1.0.1"))
		for range 2 {
			got, err := client.FetchHealthCheck(f.ctx, helloV2(nodeV2("a")))
			if err != nil || specifierTextV2(got) != "every 1s: web 10.0.0.1" {
				t.Fatalf("got %v, %v", got, err)
			}
		}
		ctx := metadata.AppendToOutgoingContext(f.ctx, hds.NodeHeader, "a")
		if _, err := client.FetchHealthCheck(ctx, reportV2(saidV2{"10.0.0.1", corev2.HealthStatus_UNHEALTHY})); err != nil {
			t.Fatal(err)
		}
		same(t, "calls", f.sink.take(), "connected a", "reported a 1=UNHEALTHY")

		r := f.rest()
		const path = "/v2/discovery:health_check"
		status, body := r.do("POST", path, "", `{"healthCheckRequest":{"node":{"id":"a","locality":{"zone":"z1"},"build_version":"0a1b/1.13.1/Clean/RELEASE/BoringSSL"},
			"capability":{"healthCheckProtocols":["TCP","REDIS"]}}}`)
		if status != 200 || !strings.Contains(body, `"10.0.0.1"`) {
			t.Errorf("fetch: %d %s", status, body)
		}
		status, body = r.do("POST", path, "a", `{"endpointHealthResponse":{"endpointsHealth":[
			{"endpoint":{"address":{"socketAddress":{"address":"10.0.0.1","portValue":80}}},"healthStatus":"HEALTHY"}]}}`)
		if status != 200 || !strings.Contains(body, `"10.0.0.1"`) {
			t.Errorf("report: %d %s", status, body)
		}
		same(t, "calls", f.sink.take(), "reported a 1=HEALTHY")
	})
}

// notInV3 are the fields of v2 messages that v3 has no more.
var notInV3 = []protoreflect.FullName{
	"envoy.api.v2.core.Node.build_version", // nameBuild
	// No specifier is made with these.
	"envoy.api.v2.core.HealthCheck.HttpHealthCheck.service_name",
	"envoy.api.v2.core.HealthCheck.HttpHealthCheck.use_http2",
	"envoy.api.v2.core.HealthCheck.CustomHealthCheck.config",
	"envoy.api.v2.core.GrpcService.GoogleGrpc.CallCredentials.MetadataCredentialsFromPlugin.config",
	"envoy.type.matcher.StringMatcher.regex",
}

// otherwise are those that are not what they are in v3.
var otherwise = []protoreflect.FullName{
	"envoy.api.v2.core.HealthCheck.HttpHealthCheck.receive", // one only; checkV2
}

// TestV2MeansTheSameOnTheWire compares all that may be in a v2 message with
// what is at its number in v3.
func TestV2MeansTheSameOnTheWire(t *testing.T) {
	c := comparison{seen: map[protoreflect.FullName]bool{}}
	c.messages(t, (&discoveryv2.HealthCheckRequestOrEndpointHealthResponse{}).ProtoReflect().Descriptor(), (&healthv3.HealthCheckRequestOrEndpointHealthResponse{}).ProtoReflect().Descriptor())
	c.messages(t, (&discoveryv2.HealthCheckSpecifier{}).ProtoReflect().Descriptor(), (&healthv3.HealthCheckSpecifier{}).ProtoReflect().Descriptor())
	slices.Sort(c.gone)
	same(t, "not in v3", c.gone, slices.Sorted(slices.Values(notInV3))...)
	same(t, "otherwise in v3", c.differ, otherwise...)
	if len(c.seen) < 40 {
		t.Errorf("only %d messages were compared", len(c.seen))
	}
}

type comparison struct {
	seen         map[protoreflect.FullName]bool
	gone, differ []protoreflect.FullName
}

func (c *comparison) messages(t *testing.T, v2, v3 protoreflect.MessageDescriptor) {
	if v2.FullName() == v3.FullName() || c.seen[v2.FullName()] {
		return
	}
	if v2.Name() != v3.Name() {
		t.Errorf("%s is %s in v3", v2.FullName(), v3.FullName())
	}
	c.seen[v2.FullName()] = true
	for i := range v2.Fields().Len() {
		old := v2.Fields().Get(i)
		now := v3.Fields().ByNumber(old.Number())
		switch {
		case now == nil:
			c.gone = append(c.gone, old.FullName())
		case old.Name() != now.Name() || old.Kind() != now.Kind() || old.Cardinality() != now.Cardinality():
			c.differ = append(c.differ, old.FullName())
		case old.Message() != nil:
			c.messages(t, old.Message(), now.Message())
		case old.Enum() != nil:
			for j := range old.Enum().Values().Len() {
				value := old.Enum().Values().Get(j)
				if in := now.Enum().Values().ByNumber(value.Number()); in == nil || in.Name() != value.Name() {
					t.Errorf("%s is %v in v3", value.FullName(), in)
				}
			}
		}
	}
}
