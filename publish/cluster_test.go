package publish

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy"
	"hdsd/envoy/fields"
)

func ofType(t clusterv3.Cluster_DiscoveryType) *clusterv3.Cluster {
	c := &clusterv3.Cluster{
		Name: "c", ConnectTimeout: durationpb.New(1e9),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: t},
		HealthChecks:         []*corev3.HealthCheck{{Timeout: durationpb.New(1e9)}},
		LoadAssignment:       &endpointv3.ClusterLoadAssignment{ClusterName: "c"},
		LbPolicy:             clusterv3.Cluster_MAGLEV,
	}
	c.ProtoReflect().SetUnknown(fields.AppendBytes(nil, 999, "kept"))
	return c
}

// withAddress has one endpoint.
func withAddress(t clusterv3.Cluster_DiscoveryType, address, resolver string) *clusterv3.Cluster {
	c := ofType(t)
	c.LoadAssignment.Endpoints = []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(address, resolver)}},
	}}}}
	return c
}

func socket(address, resolver string) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: address, ResolverName: resolver, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
	}}}
}

func TestTakeOverTakesEndpointsByEDS(t *testing.T) {
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
	}{
		{static, ""}, {eds, "svc"},
		{withAddress(clusterv3.Cluster_STRICT_DNS, "10.0.0.1", ""), ""}, {withAddress(clusterv3.Cluster_LOGICAL_DNS, "::1", ""), ""},
	} {
		before := proto.CloneOf(c.in)
		want := proto.CloneOf(c.in)
		want.HealthChecks, want.LoadAssignment = nil, nil
		want.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		want.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: byADS, ServiceName: c.service}
		got := TakeOver(c.in, ByADS())
		if !proto.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
		if !proto.Equal(c.in, before) {
			t.Errorf("the cluster given was changed: %v", c.in)
		}
		if TakeOver(c.in, nil) != c.in {
			t.Error("an unchecked cluster does not go out as it came in")
		}
	}
	for c, want := range map[*clusterv3.Cluster]string{TakeOver(eds, ByADS()): "svc", TakeOver(static, ByADS()): "c", static: ""} {
		if got := envoy.AssignmentName(c); got != want {
			t.Errorf("the assignment is %q, want %q", got, want)
		}
	}
}

func TestClustersThatFindEndpointsThemselvesAreUnchanged(t *testing.T) {
	custom := ofType(0)
	custom.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "x"}}
	second := withAddress(clusterv3.Cluster_STRICT_DNS, "10.0.0.1", "")
	second.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{{Address: socket("db.internal", "")}}
	for _, c := range []*clusterv3.Cluster{
		withAddress(clusterv3.Cluster_STRICT_DNS, "db.internal", ""), withAddress(clusterv3.Cluster_LOGICAL_DNS, "db.internal", ""),
		withAddress(clusterv3.Cluster_STRICT_DNS, "10.0.0.1", "srv"), second, ofType(clusterv3.Cluster_ORIGINAL_DST), custom,
	} {
		if CanTakeOver(c) || TakeOver(c, ByADS()) != c {
			t.Errorf("changed: %v", c)
		}
	}
	if !CanTakeOver(new(clusterv3.Cluster)) {
		t.Error("a cluster without a type is STATIC")
	}
}
