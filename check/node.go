package check

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy"
	"hdsd/health"
)

// agent is the checker's name of itself.
const agent = "hdsd"

// extensions are Envoy's names for this checker's abilities, by category. They include
// those that the coordinator only assumes of other checkers.
var extensions = [][2]string{
	{"hdsd.abilities", string(health.SeveralChecks)},
	{"envoy.health_checkers", "envoy.health_checkers.http"},
	{"envoy.health_checkers", "envoy.health_checkers.tcp"},
	{"envoy.health_checkers", "envoy.health_checkers.grpc"},
	{"envoy.health_checkers", redisName},
	{"envoy.transport_sockets.upstream", rawName},
	{"envoy.transport_sockets.upstream", tlsName},
}

// firstMessage returns the first message of a stream.
func firstMessage(o *Options) *request {
	return &request{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
		HealthCheckRequest: Introduction(o),
	}}
}

// Introduction returns the first message of a checker, which says what it is.
func Introduction(o *Options) *healthv3.HealthCheckRequest {
	return &healthv3.HealthCheckRequest{
		Node: node(o),
		Capability: &healthv3.Capability{HealthCheckProtocols: []healthv3.Capability_Protocol{
			healthv3.Capability_HTTP, healthv3.Capability_TCP, healthv3.Capability_REDIS,
		}},
	}
}

func node(o *Options) *corev3.Node {
	n := &corev3.Node{
		Id:                   o.NodeID,
		UserAgentName:        agent,
		Locality:             envoy.LocalityMessage(o.Locality),
		UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: o.Version},
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
