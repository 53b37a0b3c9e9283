package config

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source/xds"
)

// relayName is the name of the source that has what the relay's clients have.
const relayName = "relay"

// relay checks the control plane of the relay.
func (c *checks) relay(r *configv1.Relay) {
	if r == nil {
		return
	}
	c.duration("relay.keep", r.GetKeep(), 0, maxHold)
	api := r.GetUpstream().GetApiConfigSource()
	const field = "relay.upstream.api_config_source"
	if api == nil {
		c.add(field, "is required, such as {api_type: AGGREGATED_DELTA_GRPC, grpc_services: [{google_grpc: {target_uri: \"10.0.0.5:18000\", stat_prefix: upstream}}]}")
		return
	}
	if api.GetApiType() == corev3.ApiConfigSource_REST {
		c.add(field+".api_type", "is REST, which the relay does not speak: write AGGREGATED_DELTA_GRPC, AGGREGATED_GRPC, DELTA_GRPC or GRPC")
		return
	}
	whole := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: api}}
	for _, problem := range xds.Validate("relay.upstream", whole) {
		c.add(problem.Field, "%s", problem.Message)
	}
}
