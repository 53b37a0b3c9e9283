package xds

import (
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// eds makes a cluster whose endpoints come by EDS.
func eds(name, service string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{
			ServiceName: service,
			EdsConfig:   &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}},
		},
	}
}

// inline makes a cluster with its own endpoints.
func inline(name string, hosts ...string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, LoadAssignment: endpoints(name, hosts...),
	}
}

func endpoints(name string, hosts ...string) *endpointv3.ClusterLoadAssignment {
	locality := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: "a"}}
	for _, host := range hosts {
		address := &corev3.SocketAddress{Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080}}
		locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
			Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: address}}},
		}})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}
}

func clone(from *corev3.ConfigSource) *corev3.ConfigSource { return proto.CloneOf(from) }

func pack(m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return packed
}

func grpcSource(kind corev3.ApiConfigSource_ApiType, targets ...string) *corev3.ConfigSource {
	api := &corev3.ApiConfigSource{ApiType: kind, TransportApiVersion: corev3.ApiVersion_V3}
	for _, target := range targets {
		api.GrpcServices = append(api.GrpcServices, &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{
			GoogleGrpc: &corev3.GrpcService_GoogleGrpc{TargetUri: "passthrough:///" + target, StatPrefix: "upstream"},
		}})
	}
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: api}, ResourceApiVersion: corev3.ApiVersion_V3,
	}
}

func restSource(bases ...string) *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
		ApiType: corev3.ApiConfigSource_REST, ClusterNames: bases, RefreshDelay: durationpb.New(time.Second),
	}}}
}

func text(m proto.Message) string {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(data), ", ", ",")
}

// wrap makes a resource of delta.
func wrap(name, version string, m proto.Message) *discoveryv3.Resource {
	return &discoveryv3.Resource{Name: name, Version: version, Resource: pack(m)}
}
