package config

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// EDSSource returns the ConfigSource from which data planes take the endpoints of
// checked clusters.
func EDSSource(c *Config) *corev3.ConfigSource {
	if source := c.GetDataPlanes().GetEdsConfigSource(); source != nil {
		return withVersions(source)
	}
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

// authorityLetters are what an authority consists of.
const authorityLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_~:"

// planeChecks checks data_planes.
type planeChecks struct{ *checks }

// checkAll checks how data planes get clusters and health.
func (c planeChecks) checkAll(planes *configv1.DataPlanes) {
	c.duration("data_planes.assignment_ttl", planes.GetAssignmentTtl(), minTTL, maxTTL)
	c.duration("data_planes.cluster_ttl", planes.GetClusterTtl(), minTTL, maxTTL)
	c.edsSource("data_planes.eds_config_source", planes.GetEdsConfigSource())
	if authority := planes.GetXdstpAuthority(); strings.Trim(authority, authorityLetters) != "" {
		c.add("data_planes.xdstp_authority", "%q is not the authority of a name such as xdstp://AUTHORITY/TYPE/NAME: write letters, digits and .-_~:, such as hdsd", authority)
	}
}

// edsSource refuses what Envoy 1.40 refuses, and what cannot serve all clusters.
func (c planeChecks) edsSource(field string, source *corev3.ConfigSource) {
	if source == nil {
		return
	}
	c.valid(field, source)
	if namesV2(source) {
		c.add(field, "names V2, which Envoy no longer speaks: write V3, or leave the version out")
	}
	switch source.GetConfigSourceSpecifier().(type) {
	case nil, *corev3.ConfigSource_Ads: // the message's own rules require one
	case *corev3.ConfigSource_Self:
		c.warn(field+".self", "is for gRPC clients: an Envoy refuses every cluster with it; for Envoys, write ads or api_config_source")
	case *corev3.ConfigSource_ApiConfigSource:
		c.edsAPI(field+".api_config_source", source.GetApiConfigSource())
	default:
		c.add(field, "is a path, and an Envoy takes only one assignment from a file, but all clusters get this source: write ads or api_config_source; "+
			"the files of data_planes.eds_directory are for clusters that data planes do not take from hdsd")
	}
}

func (c planeChecks) edsAPI(field string, api *corev3.ApiConfigSource) {
	switch api.GetApiType() {
	case corev3.ApiConfigSource_GRPC, corev3.ApiConfigSource_DELTA_GRPC:
		if len(api.GetGrpcServices()) != 1 {
			c.add(field+".grpc_services", "needs one server, such as [{envoy_grpc: {cluster_name: hdsd}}], where hdsd is a cluster in the data planes' bootstraps")
		}
		if len(api.GetClusterNames()) > 0 {
			c.add(field+".cluster_names", "is for REST: name the cluster in grpc_services")
		}
	case corev3.ApiConfigSource_REST:
		if len(api.GetClusterNames()) != 1 {
			c.add(field+".cluster_names", "needs one name, that of a cluster in the data planes' bootstraps which leads to hdsd's HTTP address")
		}
		if len(api.GetGrpcServices()) > 0 {
			c.add(field+".grpc_services", "is for gRPC: name the cluster in cluster_names")
		}
		if api.GetRefreshDelay().AsDuration() <= 0 {
			c.add(field+".refresh_delay", "is needed with REST: write the time between two polls, such as 1s")
		}
	default:
		c.add(field+".api_type", "is %s: an Envoy takes endpoints by GRPC, DELTA_GRPC and REST; for an aggregated stream, write {ads: {}}", api.GetApiType())
	}
}
