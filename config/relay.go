package config

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source/xds"
)

// relayName is the name of the source that has what the relay's clients have.
const relayName = "relay"

// relay checks the control plane of the relay.
func (c *checks) relay(r *configv1.Relay, clientCA string) {
	if r == nil {
		return
	}
	if r.GetForward() == configv1.Relay_CLIENT_CERTIFICATE && clientCA == "" {
		c.add("relay.forward", "CLIENT_CERTIFICATE needs grpc.tls.client_ca_file: without it, data planes show no certificate, and hdsd refuses them all")
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
	for i, service := range api.GetGrpcServices() {
		checkForwarded(c, fmt.Sprintf("%s.grpc_services[%d]", field, i), r.GetForward(), service)
	}
}

// checkForwarded says where hdsd's own identity at the control plane does not go together with those of
// its clients.
func checkForwarded(c *checks, field string, forward configv1.Relay_Forward, service *corev3.GrpcService) {
	if forward != configv1.Relay_AUTHORIZATION {
		return
	}
	hasOwn := slices.ContainsFunc(service.GetInitialMetadata(), func(h *corev3.HeaderValue) bool { return strings.EqualFold(h.GetKey(), "authorization") })
	if hasOwn || len(service.GetGoogleGrpc().GetCallCredentials()) > 0 {
		c.warn(field, "shows a token of its own: with relay.forward: AUTHORIZATION no client acts under it, and hdsd refuses clients without an authorization header; remove it, or write another relay.forward")
	}
	if service.GetGoogleGrpc().GetChannelCredentials().GetSslCredentials().GetCertChain() != nil {
		c.warn(field, "shows a certificate of its own: with relay.forward: AUTHORIZATION, a control plane that goes by certificates takes hdsd for every client; remove it, unless the control plane goes by the token")
	}
}
