package check

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/health"
)

// agent is what the checker calls itself.
const agent = "hdsd"

// extensions are Envoy's names for what this checker has built in, by
// category; and what the coordinator takes other checkers' word for.
var extensions = [][2]string{
	{"hdsd.abilities", string(health.SeveralChecks)},
	{"envoy.health_checkers", "envoy.health_checkers.http"},
	{"envoy.health_checkers", "envoy.health_checkers.tcp"},
	{"envoy.health_checkers", "envoy.health_checkers.grpc"},
	{"envoy.health_checkers", redisName},
	{"envoy.transport_sockets.upstream", rawName},
	{"envoy.transport_sockets.upstream", tlsName},
}

// hello is the first message of a stream.
func hello(o *Options) *request {
	return &request{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
		HealthCheckRequest: &healthv3.HealthCheckRequest{
			Node: node(o),
			Capability: &healthv3.Capability{HealthCheckProtocols: []healthv3.Capability_Protocol{
				healthv3.Capability_HTTP, healthv3.Capability_TCP, healthv3.Capability_REDIS,
			}},
		},
	}}
}

func node(o *Options) *corev3.Node {
	n := &corev3.Node{
		Id:            o.NodeID,
		UserAgentName: agent,
		Locality: &corev3.Locality{
			Region: o.Locality.Region, Zone: o.Locality.Zone, SubZone: o.Locality.SubZone,
		},
		UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{
			UserAgentBuildVersion: &corev3.BuildVersion{Version: version(o.Version)},
		},
	}
	if len(o.Metadata) > 0 {
		n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{}}
		for key, value := range o.Metadata {
			n.Metadata.Fields[key] = structpb.NewStringValue(value)
		}
	}
	for _, e := range extensions {
		n.Extensions = append(n.Extensions, &corev3.Extension{Category: e[0], Name: e[1]})
	}
	return n
}

// version reads as much of "1.2.3" or "v1.2.3-rc1" as there is.
func version(s string) *typev3.SemanticVersion {
	v := &typev3.SemanticVersion{}
	if s != "" && s[0] == 'v' {
		s = s[1:]
	}
	fmt.Sscanf(s, "%d.%d.%d", &v.MajorNumber, &v.MinorNumber, &v.Patch) //nolint:errcheck // what is not there stays 0
	return v
}
