package coordinator_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/eds"
)

// clustersEachWay gives the one cluster that is published, by each way that there is to take it.
func (s *site) clustersEachWay() map[string]*clusterv3.Cluster {
	s.t.Helper()
	all, asked := map[string]*clusterv3.Cluster{}, &discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "plane"}, TypeUrl: resourcev3.ClusterType}
	take := func(way string, packed []*anypb.Any, err error) {
		c := new(clusterv3.Cluster)
		if err != nil || len(packed) != 1 || packed[0].UnmarshalTo(c) != nil {
			s.t.Fatalf("%s: %v, %v", way, packed, err)
		}
		all[way] = c
	}
	ads, ctx := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial()), s.t.Context()
	state, err := ads.StreamAggregatedResources(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = state.Send(asked) // Recv tells
	got, err := state.Recv()
	take("state", got.GetResources(), err)
	delta, err := ads.DeltaAggregatedResources(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = delta.Send(&discoveryv3.DeltaDiscoveryRequest{Node: asked.GetNode(), TypeUrl: resourcev3.ClusterType})
	changed, err := delta.Recv()
	var bodies []*anypb.Any
	for _, r := range changed.GetResources() {
		bodies = append(bodies, r.GetResource())
	}
	take("delta", bodies, err)
	got, err = clusterservice.NewClusterDiscoveryServiceClient(s.dial()).FetchClusters(ctx, asked)
	take("fetch", got.GetResources(), err)
	got = new(discoveryv3.DiscoveryResponse)
	err = protojson.Unmarshal(s.post(eds.ClustersPath, "{}"), got)
	take("poll", got.GetResources(), err)
	return all
}

// TestEndpointSourceOfClusters covers each way to take clusters: the checked ones name the configured source
// of endpoints. A reload reports that a change needs a restart.
func TestEndpointSourceOfClusters(t *testing.T) {
	t.Parallel()
	const other = `
data_planes:
  eds_config_source: {api_config_source: {api_type: DELTA_GRPC, grpc_services: [{envoy_grpc: {cluster_name: hdsd}}]}}
`
	dir := t.TempDir()
	s := newSite(t, dir, quick+other, static("web", "127.0.0.1:1"))
	s.ready()
	want := &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_DELTA_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "hdsd"}}}},
		}},
	}
	check := func(when string) {
		t.Helper()
		for way, c := range s.clustersEachWay() {
			if got := c.GetEdsClusterConfig().GetEdsConfig(); !proto.Equal(got, want) || len(c.GetHealthChecks()) != 1 { // no checker is connected
				t.Errorf("%s, by %s: %v", when, way, c)
			}
		}
	}
	check("at first")
	restart, err := s.Reload(configuration(t, dir, quick, static("web", "127.0.0.1:1")))
	if err != nil || len(restart) != 1 || restart[0] != "data_planes.eds_config_source" {
		t.Errorf("Reload: %v, %v", restart, err)
	}
	move(t, dir, "clusters.yaml", "resources:\n"+static("api", "127.0.0.1:2"))
	s.eventually("the other cluster", func() bool { return s.healthOf("api", "127.0.0.1:2") != "" })
	check("after a reload")
}
