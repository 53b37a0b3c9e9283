package specifier

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func plainEndpoint() *endpointv3.Endpoint {
	return &endpointv3.Endpoint{Address: socketAt("10.0.0.1", 80)}
}

func socketAt(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

// shapeOf returns the shape of an endpoint, which has to be sent.
func shapeOf(t *testing.T, e *endpointv3.Endpoint, path string) uint64 {
	t.Helper()
	return shapeIn(t, "web", e, path, nil)
}

// shapeIn returns the shape of an endpoint of a cluster.
func shapeIn(t *testing.T, cluster string, e *endpointv3.Endpoint, path string, edit func(*corev3.HealthCheck)) uint64 {
	t.Helper()
	check := &corev3.HealthCheck{
		Timeout: durationpb.New(1e9), Interval: durationpb.New(1e9),
		UnhealthyThreshold: wrapperspb.UInt32(2), HealthyThreshold: wrapperspb.UInt32(1),
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: path}},
	}
	if edit != nil {
		edit(check)
	}
	c := Translate(cluster, &clusterv3.Cluster{Name: cluster}, &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: e}}},
	}}}, []*corev3.HealthCheck{check}, Options{})
	shapes := c.Shapes()
	if len(shapes) != 1 {
		t.Fatalf("%v has the shapes %v; set aside: %v", e, shapes, c.Excluded)
	}
	return uint64(shapes[0])
}

// TestShapesDoNotNameTheCluster: two clusters with the same checks have the same shapes.
// What is odd in a name counts, and that Envoy gets it with a hash.
func TestShapesDoNotNameTheCluster(t *testing.T) {
	grpc := func(check *corev3.HealthCheck) {
		check.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}}
	}
	alike := [][]string{
		{"web", "db", "a-cluster_with.9.dots", strings.Repeat("n", 100)},
		{"outbound|80||web.example", "outbound|8080||db.example"},
		{"a/b", "c/d"},
		{"odd%name"},
	}
	for _, edit := range []func(*corev3.HealthCheck){nil, grpc} {
		seen := map[uint64]int{}
		for kind, names := range alike {
			for i, name := range names {
				shape := shapeIn(t, name, plainEndpoint(), "/", edit)
				if other, ok := seen[shape]; ok && other != kind || !ok && i > 0 {
					t.Errorf("%q has the shape of %q", name, alike[other])
				}
				seen[shape] = kind
			}
		}
	}
	plain := shapeIn(t, "web", plainEndpoint(), "/", nil)
	if hashed := shapeIn(t, "web", plainEndpoint(), "/", grpc); hashed == plain {
		t.Error("another check has the same shape")
	}
}

func TestShapesDifferByKindOnly(t *testing.T) {
	config := func(e *endpointv3.Endpoint) *endpointv3.Endpoint_HealthCheckConfig {
		if e.HealthCheckConfig == nil {
			e.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{}
		}
		return e.HealthCheckConfig
	}
	// Each kind with members that only their addresses and names tell apart.
	kinds := map[string][]func(*endpointv3.Endpoint){
		"plain": {
			func(*endpointv3.Endpoint) {},
			func(e *endpointv3.Endpoint) { e.Address = socketAt("192.168.7.7", 65535) },
		},
		"IPv6": {
			func(e *endpointv3.Endpoint) { e.Address = socketAt("2001:db8::1", 80) },
			func(e *endpointv3.Endpoint) { e.Address = socketAt("::1", 81) },
		},
		"pipe": {
			func(e *endpointv3.Endpoint) {
				e.Address = &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/run/a"}}}
			},
			func(e *endpointv3.Endpoint) {
				e.Address = &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/run/b"}}}
			},
		},
		"port of its own": {
			func(e *endpointv3.Endpoint) { config(e).PortValue = 81 },
			func(e *endpointv3.Endpoint) { config(e).PortValue = 82 },
		},
		"address of its own": {
			func(e *endpointv3.Endpoint) { config(e).Address = socketAt("10.0.0.2", 80) },
			func(e *endpointv3.Endpoint) { config(e).Address = socketAt("10.0.0.3", 81) },
		},
		"name for its check": {
			func(e *endpointv3.Endpoint) { config(e).Hostname = "a.example" },
			func(e *endpointv3.Endpoint) { config(e).Hostname = "b.example" },
		},
		"odd name": {
			func(e *endpointv3.Endpoint) { config(e).Hostname = "a.example:80" },
		},
		"another odd name": {
			func(e *endpointv3.Endpoint) { config(e).Hostname = "b.example:80" },
		},
	}
	seen := map[uint64]string{}
	for name, members := range kinds {
		for i, edit := range members {
			e := plainEndpoint()
			edit(e)
			before := proto.CloneOf(e)
			shape := shapeOf(t, e, "/")
			if other, ok := seen[shape]; ok && other != name || !ok && i > 0 {
				t.Errorf("member %d of %s has the shape of %q", i, name, other)
			}
			seen[shape] = name
			if !proto.Equal(before, e) {
				t.Errorf("%s: the source's endpoint was changed", name)
			}
			if shapeOf(t, e, "/other") == shape {
				t.Errorf("%s: checked otherwise, it has the same shape", name)
			}
		}
	}
}
