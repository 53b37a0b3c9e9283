package xds

import (
	"fmt"
	"net/url"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	minimumv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/config/validators/minimum_clusters/v3"

	"hdsd/internal/yamlpb"
)

// Problem is a fault of a ConfigSource, and how to fix it.
type Problem struct{ Field, Message string }

// Validate returns every problem of a ConfigSource for an xDS source; field is its place. It
// also reads the named files. It refuses a ConfigSource with a path, which is not for this
// package.
func Validate(field string, config *corev3.ConfigSource) []Problem {
	v := &validation{}
	for _, violation := range yamlpb.Validate(config) {
		v.add(field+"."+violation.Field, "%s", violation.Reason)
	}
	v.source(field, config)
	return v.problems
}

type validation struct{ problems []Problem }

// add records a problem, unless the field already has one.
func (v *validation) add(field, format string, args ...any) {
	for _, p := range v.problems {
		if p.Field == field {
			return
		}
	}
	v.problems = append(v.problems, Problem{field, fmt.Sprintf(format, args...)})
}

func (v *validation) source(field string, config *corev3.ConfigSource) {
	if len(config.GetAuthorities()) > 0 {
		v.add(field+".authorities", "is for names of the form xdstp://, which hdsd does not resolve: remove it")
	}
	if config.GetInitialFetchTimeout().AsDuration() < 0 {
		v.add(field+".initial_fetch_timeout", "needs a duration of 0 (no timeout) or more")
	}
	if config.GetResourceApiVersion() == corev3.ApiVersion_V2 { //nolint:staticcheck // to refuse it
		v.add(field+".resource_api_version", "V2 has come to its end: use V3, and resources of v3")
	}
	switch config.GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_ApiConfigSource:
		v.api(field+".api_config_source", config.GetApiConfigSource())
	case *corev3.ConfigSource_Ads:
		v.add(field+".ads", "means the ADS of an Envoy's bootstrap, and hdsd has none: name the server, "+
			"as api_config_source: {api_type: AGGREGATED_DELTA_GRPC, grpc_services: [{google_grpc: {target_uri: \"10.0.0.5:18000\", stat_prefix: upstream}}]}")
	case *corev3.ConfigSource_Self:
		v.add(field+".self", "means the server that the configuration with it came from, and this one came from a file: use api_config_source")
	case *corev3.ConfigSource_Path, *corev3.ConfigSource_PathConfigSource:
		v.add(field, "is a path, and no management server: use api_config_source")
	default: // the message's own rules require one
	}
}

func (v *validation) api(field string, api *corev3.ApiConfigSource) {
	if api.GetTransportApiVersion() == corev3.ApiVersion_V2 { //nolint:staticcheck // to refuse it
		v.add(field+".transport_api_version", "V2 has come to its end: use V3, and a management server that speaks it")
	}
	switch api.GetApiType() {
	case corev3.ApiConfigSource_REST:
		v.rest(field, api)
	case corev3.ApiConfigSource_GRPC, corev3.ApiConfigSource_DELTA_GRPC,
		corev3.ApiConfigSource_AGGREGATED_GRPC, corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC:
		v.grpc(field, api)
	default:
		v.add(field+".api_type", "needs one of AGGREGATED_DELTA_GRPC, AGGREGATED_GRPC, DELTA_GRPC, GRPC and REST")
	}
	for i, validator := range api.GetConfigValidators() {
		v.validator(fmt.Sprintf("%s.config_validators[%d]", field, i), validator)
	}
}

const minimumName = "envoy.config.validators.minimum_clusters_validator"

func (v *validation) validator(field string, extension *corev3.TypedExtensionConfig) {
	minimum := &minimumv3.MinimumClustersValidator{}
	switch config := extension.GetTypedConfig(); {
	case !config.MessageIs(minimum):
		v.add(field, "hdsd does not know %q (%s): the one that it knows is %s", extension.GetName(), config.GetTypeUrl(), minimumName)
	case config.UnmarshalTo(minimum) != nil:
		v.add(field+".typed_config", "cannot be decoded")
	}
}

// rest checks a REST source.
func (v *validation) rest(field string, api *corev3.ApiConfigSource) {
	if len(api.GetClusterNames()) == 0 {
		v.add(field+".cluster_names", "needs the base URL of a server, such as \"http://10.0.0.5:8080\"")
	}
	for i, base := range api.GetClusterNames() {
		u, err := url.Parse(base)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.add(fmt.Sprintf("%s.cluster_names[%d]", field, i), "needs a base URL, as hdsd has no clusters to ask by name: write \"http://10.0.0.5:8080\" instead of %q", base)
		case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
			v.add(fmt.Sprintf("%s.cluster_names[%d]", field, i), "needs a base URL without user, query and fragment")
		}
	}
	if len(api.GetGrpcServices()) > 0 {
		v.add(field+".grpc_services", "is for the gRPC types: with REST, put base URLs into cluster_names")
	}
	if api.GetRefreshDelay().AsDuration() <= 0 {
		v.add(field+".refresh_delay", "says how long to wait between two polls, and is needed: write 5s")
	}
	if api.GetRequestTimeout() != nil && api.GetRequestTimeout().AsDuration() <= 0 {
		v.add(field+".request_timeout", "needs a duration above 0, or none for 1s")
	}
	if api.GetRateLimitSettings() != nil {
		v.add(field+".rate_limit_settings", "is for the gRPC types: with REST, refresh_delay says how often to ask")
	}
	if api.GetSetNodeOnFirstMessageOnly() {
		v.add(field+".set_node_on_first_message_only", "is for the gRPC types, as each poll stands alone: remove it")
	}
}

// grpc checks a gRPC source.
func (v *validation) grpc(field string, api *corev3.ApiConfigSource) {
	if len(api.GetClusterNames()) > 0 {
		v.add(field+".cluster_names", "is for REST: with %s, use grpc_services", api.GetApiType())
	}
	if len(api.GetGrpcServices()) == 0 {
		v.add(field+".grpc_services", "needs a server, such as [{google_grpc: {target_uri: \"10.0.0.5:18000\", stat_prefix: upstream}}]")
	}
	for name, set := range map[string]bool{"refresh_delay": api.GetRefreshDelay() != nil, "request_timeout": api.GetRequestTimeout() != nil} {
		if set {
			v.add(field+"."+name, "is for REST: on a stream, the server says when something is new; remove it")
		}
	}
	if tokens := api.GetRateLimitSettings().GetMaxTokens(); tokens != nil && tokens.GetValue() == 0 {
		v.add(field+".rate_limit_settings.max_tokens", "needs 1 or more, else nothing could ever be asked")
	}
	for i, service := range api.GetGrpcServices() {
		v.service(fmt.Sprintf("%s.grpc_services[%d]", field, i), service)
	}
}

// lower reports whether a text is a valid header name over gRPC.
func lower(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}
