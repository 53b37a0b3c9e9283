package coordinator_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/test/envoy"
)

// management is a management server with one snapshot for all who ask.
type management struct {
	t       testing.TB
	cache   cache.SnapshotCache
	version int
	address string
	streams atomic.Int32 // that were opened
	hears   callbacks
	extra   map[resource.Type][]types.Resource // of other types
	loads   *loads                             // it takes load reports; nil: it does not

	server *grpc.Server // nil while it is away
	served sync.WaitGroup
}

type everyone struct{}

func (everyone) ID(*corev3.Node) string { return "" }

func newManagement(t testing.TB) *management {
	t.Helper()
	m := &management{t: t, cache: cache.NewSnapshotCache(true, everyone{}, nil), address: envoy.FreeAddress(t)}
	t.Cleanup(m.leave)
	return m
}

// callbacks get the requests of clients, if they are set.
type callbacks struct {
	onDelta func(*discoveryv3.DeltaDiscoveryRequest)
	onState func(*discoveryv3.DiscoveryRequest)
	onOpen  func(context.Context) // of a delta stream
}

func (c *callbacks) delta(r *discoveryv3.DeltaDiscoveryRequest) {
	if c.onDelta != nil {
		c.onDelta(r)
	}
}

func (c *callbacks) state(r *discoveryv3.DiscoveryRequest) {
	if c.onState != nil {
		c.onState(r)
	}
}

// come has it serve what it has.
func (m *management) come() {
	m.t.Helper()
	listener, err := net.Listen("tcp", m.address)
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.server = grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(m.server, gcp.NewServer(ctx, m.cache, gcp.CallbackFuncs{
		DeltaStreamOpenFunc: func(ctx context.Context, _ int64, _ string) error {
			m.streams.Add(1)
			if m.hears.onOpen != nil {
				m.hears.onOpen(ctx)
			}
			return nil
		},
		StreamDeltaRequestFunc: func(_ int64, r *discoveryv3.DeltaDiscoveryRequest) error { m.hears.delta(r); return nil },
		StreamRequestFunc:      func(_ int64, r *discoveryv3.DiscoveryRequest) error { m.hears.state(r); return nil },
	}))
	if m.loads != nil {
		loadstatsv3.RegisterLoadReportingServiceServer(m.server, m.loads)
	}
	m.served.Go(func() {
		defer cancel()
		_ = m.server.Serve(listener)
	})
}

// leave ends its streams.
func (m *management) leave() {
	if m.server != nil {
		m.server.Stop()
		m.served.Wait()
		m.server = nil
	}
}

// says has it say this from now on.
func (m *management) says(clusters []types.Resource, assignments ...types.Resource) {
	m.t.Helper()
	m.version++
	parts := map[resource.Type][]types.Resource{resource.ClusterType: clusters, resource.EndpointType: assignments}
	maps.Copy(parts, m.extra)
	all, err := cache.NewSnapshot(strconv.Itoa(m.version), parts)
	if err == nil {
		err = m.cache.SetSnapshot(context.Background(), "", all)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// source is the line of a configuration that has it as a source. Unless more says
// otherwise, nothing of it is held.
func (m *management) source(name, timeout, more string) string {
	if !strings.Contains(more, "hold_shrinkage") {
		more += ", hold_shrinkage: {share: 1}"
	}
	return fmt.Sprintf("- {name: %s, config_source: {initial_fetch_timeout: %s, api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: %q, stat_prefix: x}}]}}%s}\n",
		name, timeout, m.address, more)
}

// byEDS is a cluster that is checked and takes its endpoints by EDS.
func byEDS(names ...string) (all []types.Resource) {
	for _, name := range names {
		all = append(all, &clusterv3.Cluster{
			Name: name, ConnectTimeout: durationpb.New(time.Second), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
				ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
			}},
			HealthChecks: []*corev3.HealthCheck{{
				Timeout: durationpb.New(time.Second), Interval: durationpb.New(50 * time.Millisecond),
				HealthyThreshold: wrapperspb.UInt32(1), UnhealthyThreshold: wrapperspb.UInt32(1),
				HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/healthz"}},
			}},
		})
	}
	return all
}

// endpoints is an assignment, each endpoint with what the server says of it.
func endpoints(name string, says corev3.HealthStatus, addresses ...string) types.Resource {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{}}}
	for _, address := range addresses {
		host, portText, _ := net.SplitHostPort(address)
		port, _ := strconv.ParseUint(portText, 10, 16)
		a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, &endpointv3.LbEndpoint{
			HealthStatus: says, HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
				}}},
			}},
		})
	}
	return a
}
