package eds

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

func ofType(t clusterv3.Cluster_DiscoveryType) *clusterv3.Cluster {
	c := &clusterv3.Cluster{
		Name: "c", ConnectTimeout: durationpb.New(1e9),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: t},
		HealthChecks:         []*corev3.HealthCheck{{Timeout: durationpb.New(1e9)}},
		LoadAssignment:       &endpointv3.ClusterLoadAssignment{ClusterName: "c"},
		LbPolicy:             clusterv3.Cluster_MAGLEV,
	}
	c.ProtoReflect().SetUnknown(unknownField(999, "kept"))
	return c
}

func TestPublishClusterTakesEndpointsByEDS(t *testing.T) {
	byADS := &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
	static := ofType(clusterv3.Cluster_STATIC)
	eds := ofType(clusterv3.Cluster_EDS)
	eds.LoadAssignment = nil
	eds.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{ServiceName: "svc", EdsConfig: &corev3.ConfigSource{}}
	for _, c := range []struct {
		in      *clusterv3.Cluster
		service string
	}{{static, ""}, {eds, "svc"}} {
		before := proto.CloneOf(c.in)
		want := proto.CloneOf(c.in)
		want.HealthChecks, want.LoadAssignment = nil, nil
		want.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		want.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: byADS, ServiceName: c.service}
		got := PublishCluster(c.in, true)
		if !proto.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
		if !proto.Equal(c.in, before) {
			t.Errorf("the cluster given was changed: %v", c.in)
		}
		if PublishCluster(c.in, false) != c.in {
			t.Error("an unchecked cluster does not go out as it came in")
		}
	}
	equal(t, "service", serviceName(PublishCluster(eds, true)), "svc")
	equal(t, "service", serviceName(PublishCluster(static, true)), "c")
	equal(t, "service", serviceName(static), "")
}

func TestClustersThatFindEndpointsThemselvesGoOutAsTheyCame(t *testing.T) {
	custom := ofType(0)
	custom.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "x"}}
	for _, c := range []*clusterv3.Cluster{
		ofType(clusterv3.Cluster_STRICT_DNS), ofType(clusterv3.Cluster_LOGICAL_DNS), ofType(clusterv3.Cluster_ORIGINAL_DST), custom,
	} {
		if Publishable(c) || PublishCluster(c, true) != c {
			t.Errorf("changed: %v", c)
		}
	}
	if !Publishable(new(clusterv3.Cluster)) {
		t.Error("a cluster without a type is STATIC")
	}
}
