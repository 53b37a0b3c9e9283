package fleet

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
)

// manager is somebody else's management server, go-control-plane's, with one
// EDS cluster.
type manager struct {
	t          *testing.T
	name       string
	grpc, http string // addresses
	snapshots  cache.SnapshotCache
	version    int
}

// startManager starts one that serves over gRPC and by polls until the test ends.
func startManager(t *testing.T, name string) *manager {
	t.Helper()
	m := &manager{t: t, name: name, snapshots: cache.NewSnapshotCache(false, everybody{}, nil)}
	server := gcp.NewServer(t.Context(), m.snapshots, nil)
	overGRPC := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(overGRPC, server)
	clusterservice.RegisterClusterDiscoveryServiceServer(overGRPC, server)
	endpointservice.RegisterEndpointDiscoveryServiceServer(overGRPC, server)
	gateway := gcp.HTTPGateway{Server: server}
	overHTTP := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, code, err := gateway.ServeHTTP(r)
		if err != nil {
			body = []byte(err.Error())
		}
		w.WriteHeader(code)
		_, _ = w.Write(body) // a client that is gone asks again
	})}
	var serving sync.WaitGroup
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	grpcListener, httpListener := listen(), listen()
	m.grpc, m.http = grpcListener.Addr().String(), httpListener.Addr().String()
	serving.Go(func() { _ = overGRPC.Serve(grpcListener) })
	serving.Go(func() { _ = overHTTP.Serve(httpListener) })
	t.Cleanup(func() { overGRPC.Stop(); overHTTP.Close(); serving.Wait() })
	return m
}

// everybody is any node.
type everybody struct{}

func (everybody) ID(*corev3.Node) string { return "everybody" }

// publish gives the cluster these endpoints, one in a locality, with the health
// that the manager says they have.
func (m *manager) publish(addresses []string, says map[string]corev3.HealthStatus) {
	m.t.Helper()
	check := &corev3.HealthCheck{}
	if err := protojson.Unmarshal([]byte(`{"timeout":"1s","interval":"0.25s","unhealthyThreshold":2,"healthyThreshold":1,"httpHealthCheck":{"path":"/healthz"}}`), check); err != nil {
		m.t.Fatal(err)
	}
	assignment := &endpointv3.ClusterLoadAssignment{ClusterName: m.name}
	for i, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		number, _ := strconv.ParseUint(port, 10, 16) // of a listener
		if err != nil {
			m.t.Fatal(err)
		}
		assignment.Endpoints = append(assignment.Endpoints, &endpointv3.LocalityLbEndpoints{
			Locality: &corev3.Locality{Region: "eu", Zone: string(rune('a' + i%3))},
			LbEndpoints: []*endpointv3.LbEndpoint{{HealthStatus: says[address], HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(number)},
				}}},
			}}}},
		})
	}
	cluster := &clusterv3.Cluster{
		Name: m.name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}, HealthChecks: []*corev3.HealthCheck{check},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
			ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}},
		}},
	}
	m.version++
	snapshot, err := cache.NewSnapshot(strconv.Itoa(m.version), map[resource.Type][]types.Resource{
		resource.ClusterType: {cluster}, resource.EndpointType: {assignment},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.snapshots.SetSnapshot(m.t.Context(), "everybody", snapshot); err != nil {
		m.t.Fatal(err)
	}
}

// source is a source of hdsd that takes from a server.
func sourceOf(name, kind, address, more string) string {
	server := fmt.Sprintf("grpc_services: [{google_grpc: {target_uri: %q, stat_prefix: %s}}]", address, name)
	if kind == "REST" {
		server = fmt.Sprintf("cluster_names: [%q], refresh_delay: 0.1s, request_timeout: 1s", "http://"+address)
	}
	return fmt.Sprintf("- {name: %s, config_source: {initial_fetch_timeout: 3s, resource_api_version: V3, api_config_source: {api_type: %s, transport_api_version: V3, %s}}%s}\n", name, kind, server, more)
}

// from changes what a coordinator's sources are.
func (c *Coordinator) from(extra string, sources ...string) {
	c.t.Helper()
	c.write("hdsd.yaml", fmt.Sprintf("node_id: hdsd-test\ngrpc: {address: %q}\nhttp: {address: %q}\ndata_dir: data\nsources:\n%s%s\n",
		c.GRPC, c.HTTP, strings.Join(sources, ""), extra))
}
