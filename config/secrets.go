package config

import (
	"path/filepath"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
)

// SDSConfig returns the ConfigSource from which checkers take secrets that a source has
// by ads, self or a path; nil if they take none.
func SDSConfig(c *Config) *corev3.ConfigSource { return withVersions(c.GetCheckers().GetSdsConfig()) }

// withVersions returns a copy that names V3, the only version that Envoy speaks.
func withVersions(api *corev3.ConfigSource) *corev3.ConfigSource {
	if api == nil {
		return nil
	}
	source := proto.CloneOf(api)
	source.ResourceApiVersion = corev3.ApiVersion_V3
	if api := source.GetApiConfigSource(); api != nil {
		api.TransportApiVersion = corev3.ApiVersion_V3
	}
	return source
}

// sdsConfig refuses what no checker takes secrets from. Checkers are to be sent nothing
// that they lack, so it warns of what only some may have.
func (c *checks) sdsConfig(field string, source *corev3.ConfigSource) {
	if source == nil {
		return
	}
	c.valid(field, source)
	if namesV2(source) {
		c.add(field, "names V2, which Envoy no longer speaks: write V3, or leave the version out")
	}
	if len(source.GetAuthorities()) > 0 {
		c.add(field+".authorities", "is for names of the form xdstp://, and secrets have none: remove it")
	}
	switch source.GetConfigSourceSpecifier().(type) {
	case nil: // the message's own rules require one
	case *corev3.ConfigSource_ApiConfigSource:
		c.sdsAPI(field+".api_config_source", source.GetApiConfigSource())
	case *corev3.ConfigSource_Ads:
		c.warn(field+".ads", "needs ads_config in the bootstrap of every checker: make sure that each has it")
	case *corev3.ConfigSource_Path, *corev3.ConfigSource_PathConfigSource:
		path := source.GetPathConfigSource().GetPath() + source.GetPath() //nolint:staticcheck // a deprecated field still counts
		if !strings.HasPrefix(path, "/") && !filepath.IsAbs(path) {
			c.add(field, "%q is relative: write the absolute path that the file has on the checkers' machines", path)
		}
		c.warn(field, "is a path: an Envoy takes only one secret from a file, which every checker must have; for several, use api_config_source")
	default:
		c.add(field, "is not possible, as a checker's secrets do not come from where its checks come from: use api_config_source")
	}
}

func (c *checks) sdsAPI(field string, api *corev3.ApiConfigSource) {
	if t := api.GetApiType(); t != corev3.ApiConfigSource_GRPC && t != corev3.ApiConfigSource_DELTA_GRPC {
		c.add(field+".api_type", "is %s: an Envoy takes secrets by GRPC and DELTA_GRPC", t)
	}
	if services := api.GetGrpcServices(); len(services) != 1 || services[0].GetEnvoyGrpc().GetClusterName() == "" {
		c.add(field+".grpc_services", "needs one server, such as [{envoy_grpc: {cluster_name: sds}}], where sds is a cluster in the checkers' bootstraps")
	}
}

func namesV2(source *corev3.ConfigSource) bool {
	return source.GetResourceApiVersion() == corev3.ApiVersion_V2 || source.GetApiConfigSource().GetTransportApiVersion() == corev3.ApiVersion_V2 //nolint:staticcheck // to refuse it
}
