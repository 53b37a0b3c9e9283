package specifier

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/health"
)

// FuzzTranslate has any cluster, assignment and checks become a specifier that
// is well formed, or nothing.
func FuzzTranslate(f *testing.F) {
	seed := func(check string, endpoints string, config *clusterv3.Cluster) {
		c := &clusterv3.Cluster{Name: "web", LoadAssignment: assignment(f, endpoints)}
		if config != nil {
			proto.Merge(c, config)
		}
		c.HealthChecks = []*corev3.HealthCheck{parse(f, checkText+check, &corev3.HealthCheck{})}
		text, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	one := `endpoints {` + endpointText("10.0.0.1") + endpointText("::1") + endpointText("fe80::1%lo") + `} endpoints {locality {zone: "b"}}`
	seed(`http_health_check {path: "/" expected_statuses {start: 200 end: 300}}`, one, nil)
	seed(`tcp_health_check {send {text: "00"} receive {binary: "x"}}`, one, &clusterv3.Cluster{TransportSocket: tlsSocket(f, "a")})
	seed(`grpc_health_check {}`, one, parse(f, `transport_socket_matches {name: "x" match {fields {key: "a" value {string_value: "b"}}}}`, &clusterv3.Cluster{}))
	seed(`custom_health_check {name: "envoy.health_checkers.redis" typed_config {[type.googleapis.com/envoy.extensions.health_checkers.redis.v3.Redis] {key: "x"}}}`,
		`endpoints {lb_endpoints {endpoint {address {pipe {path: "/x" mode: 1}} health_check_config {port_value: 5}}} lb_endpoints {endpoint_name: "x"}}`, nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &clusterv3.Cluster{}
		if proto.Unmarshal(text, c) != nil {
			return
		}
		before := proto.CloneOf(c)
		out := Translate(c.GetName(), c, c.GetLoadAssignment(), c.GetHealthChecks(), Options{})
		if !proto.Equal(before, c) && proto.Equal(before, before) { // NaN is not equal to itself
			t.Fatal("the source was changed")
		}
		spec := specifierOf(out)
		if wrong := malformed(spec); wrong != "" {
			t.Fatalf("%s\n%s", wrong, prototext.Format(spec.Message()))
		}
		if len(spec.Order) != len(out.Endpoints) {
			t.Fatalf("%d of %d endpoints are sent", len(spec.Order), len(out.Endpoints))
		}
		everyEndpoint(t, c.GetLoadAssignment(), out)
	})
}

// everyEndpoint sees that nothing is lost: what is not checked says why, but
// for what the source does not want to be checked.
func everyEndpoint(t *testing.T, a *endpointv3.ClusterLoadAssignment, out *Cluster) {
	t.Helper()
	if len(out.Excluded) == 1 && out.Excluded[0].Address == "" {
		if len(out.Endpoints) > 0 || out.Excluded[0].Reason == "" {
			t.Fatalf("a cluster that is set aside as a whole: %+v", out)
		}
		return
	}
	known := map[string]bool{}
	for _, q := range out.Excluded {
		if q.Reason == "" || q.Address == "" {
			t.Fatalf("excluded without a reason: %+v", q)
		}
		known[q.Address] = true
	}
	checked := map[health.Endpoint]bool{}
	for i := range out.Endpoints {
		checked[out.Key(i)] = true
	}
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			address := envoy.Address(e.GetEndpoint().GetAddress())
			key := health.Endpoint{Cluster: out.Name, Locality: envoy.Locality(l.GetLocality()), Address: address}
			if !checked[key] && !known[address] && address != "" && !e.GetEndpoint().GetHealthCheckConfig().GetDisableActiveHealthCheck() {
				t.Fatalf("%+v is neither checked nor excluded", key)
			}
		}
	}
}

// FuzzCheckerFromNode has any node become a checker or an error.
func FuzzCheckerFromNode(f *testing.F) {
	text, err := proto.Marshal(parse(f, `id: "checker-1" user_agent_name: "envoy" user_agent_version: "1.40.0" extensions {name: "envoy.health_checkers.grpc"}`, &corev3.Node{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		node := &corev3.Node{}
		if proto.Unmarshal(text, node) != nil {
			return
		}
		c, err := CheckerFromNode(node, nil)
		if (err == nil) != (c.ID != "") {
			t.Fatalf("checker %+v, error %v", c, err)
		}
	})
}
