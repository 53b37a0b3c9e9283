package xds

import (
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	minimumv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/config/validators/minimum_clusters/v3"
)

// Defaults and bounds.
const (
	defaultFetchTimeout   = 15 * time.Second
	defaultRequestTimeout = time.Second
	defaultOpenTimeout    = 5 * time.Second
	defaultMaxTokens      = 100
	defaultFillRate       = 10
	lowestFillRate        = 1.0 / (365 * 24 * 3600) // once a year
)

// settings are the content of a valid ConfigSource.
type settings struct {
	api                     *corev3.ApiConfigSource
	rest, delta, aggregated bool
	fetchTimeout            time.Duration // 0: none
	minimumClusters         int
}

func settingsOf(c *corev3.ConfigSource) settings {
	api := c.GetApiConfigSource()
	s := settings{api: api, fetchTimeout: defaultFetchTimeout}
	switch api.GetApiType() {
	case corev3.ApiConfigSource_REST:
		s.rest = true
	case corev3.ApiConfigSource_DELTA_GRPC:
		s.delta = true
	case corev3.ApiConfigSource_AGGREGATED_GRPC:
		s.aggregated = true
	case corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC:
		s.delta, s.aggregated = true, true
	default:
	}
	if timeout := c.GetInitialFetchTimeout(); timeout != nil {
		s.fetchTimeout = timeout.AsDuration()
	}
	for _, v := range api.GetConfigValidators() {
		minimum := &minimumv3.MinimumClustersValidator{}
		if v.GetTypedConfig().UnmarshalTo(minimum) == nil {
			s.minimumClusters = max(s.minimumClusters, int(minimum.GetMinClustersNum()))
		}
	}
	return s
}

// servers returns the addresses to ask, in order.
func (s *settings) servers() []string {
	if s.rest {
		names := make([]string, len(s.api.GetClusterNames()))
		for i, base := range s.api.GetClusterNames() {
			names[i] = strings.TrimRight(base, "/")
		}
		return names
	}
	names := make([]string, len(s.api.GetGrpcServices()))
	for i, service := range s.api.GetGrpcServices() {
		names[i] = service.GetGoogleGrpc().GetTargetUri()
	}
	return names
}
