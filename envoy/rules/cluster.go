package rules

import (
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/internal/yamlpb"
)

// rule is a requirement of Envoy when it builds a cluster, beyond the rules of the
// message. It has only requirements of every release and build: an extension may be the
// user's own.
type rule struct {
	field, reason string
	broken        func(*clusterv3.Cluster) bool
}

const (
	dnsCluster       = typePrefix + "envoy.extensions.clusters.dns.v3.DnsCluster"
	aggregateCluster = typePrefix + "envoy.extensions.clusters.aggregate.v3.ClusterConfig"
)

var rules = []rule{
	{"lb_policy", "is not possible in a cluster of this type: write CLUSTER_PROVIDED", func(c *clusterv3.Cluster) bool {
		return balancesItself(c) && c.GetLbPolicy() != clusterv3.Cluster_CLUSTER_PROVIDED
	}},
	{"load_assignment", "is not possible: an ORIGINAL_DST cluster finds its endpoints itself, so remove it", func(c *clusterv3.Cluster) bool {
		return hasType(c, clusterv3.Cluster_ORIGINAL_DST) && c.GetLoadAssignment() != nil
	}},
	{"original_dst_lb_config.http_header_name", "counts with use_http_header only: write use_http_header: true", func(c *clusterv3.Cluster) bool {
		o := c.GetOriginalDstLbConfig()
		return hasType(c, clusterv3.Cluster_ORIGINAL_DST) && o.GetHttpHeaderName() != "" && !o.GetUseHttpHeader()
	}},
	{"lb_policy", "is not possible: a cluster of this type provides no load balancing of its own; choose another, such as ROUND_ROBIN", func(c *clusterv3.Cluster) bool {
		return (builtIn(c) || c.GetClusterType().GetTypedConfig().GetTypeUrl() == dnsCluster) && !hasType(c, clusterv3.Cluster_ORIGINAL_DST) && c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED && c.GetLoadBalancingPolicy() == nil
	}},
	{"load_balancing_policy", "is not possible in a cluster of this type: remove it", func(c *clusterv3.Cluster) bool {
		return balancesItself(c) && c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED && c.GetLoadBalancingPolicy() != nil &&
			!strings.HasPrefix(firstPolicy(c).GetTypeUrl(), typePrefix+"envoy.extensions.load_balancing_policies.cluster_provided.")
	}},
	{"load_balancing_policy.policies", "has no policy with a typed_config: give one, or remove load_balancing_policy", func(c *clusterv3.Cluster) bool {
		return c.GetLoadBalancingPolicy() != nil && firstPolicy(c) == nil
	}},
	{"lb_subset_config", "is not possible beside CLUSTER_PROVIDED: remove one of the two", func(c *clusterv3.Cluster) bool {
		return c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED && len(c.GetLbSubsetConfig().GetSubsetSelectors()) > 0
	}},
	{"load_balancing_policy", "is missing: LOAD_BALANCING_POLICY_CONFIG needs it", func(c *clusterv3.Cluster) bool {
		return c.GetLbPolicy() == clusterv3.Cluster_LOAD_BALANCING_POLICY_CONFIG && c.GetLoadBalancingPolicy() == nil
	}},
	{"lb_subset_config", "is not possible beside load_balancing_policy: put envoy.load_balancing_policies.subset into that", func(c *clusterv3.Cluster) bool {
		return c.GetLoadBalancingPolicy() != nil && c.GetLbSubsetConfig() != nil
	}},
	{"common_lb_config", "may not have zone_aware_lb_config, locality_weighted_lb_config and consistent_hashing_lb_config beside load_balancing_policy: put them into that", func(c *clusterv3.Cluster) bool {
		l := c.GetCommonLbConfig()
		return c.GetLoadBalancingPolicy() != nil && (l.GetLocalityConfigSpecifier() != nil || l.GetConsistentHashingLbConfig() != nil)
	}},
	{"ring_hash_lb_config", "has a minimum_ring_size (1024 where none is given) above its maximum_ring_size: lower the one, or raise the other", func(c *clusterv3.Cluster) bool {
		r := c.GetRingHashLbConfig()
		minimum, maximum := uint64(1024), uint64(8<<20)
		if value := r.GetMinimumRingSize(); value != nil {
			minimum = value.GetValue()
		}
		if value := r.GetMaximumRingSize(); value != nil {
			maximum = value.GetValue()
		}
		return balances(c, clusterv3.Cluster_RING_HASH) && minimum > maximum
	}},
	{"maglev_lb_config.table_size", "has to be a prime number: write one, such as 65537", func(c *clusterv3.Cluster) bool {
		size := c.GetMaglevLbConfig().GetTableSize()
		return balances(c, clusterv3.Cluster_MAGLEV) && size != nil && size.GetValue() != 1 && !new(big.Int).SetUint64(size.GetValue()).ProbablyPrime(0)
	}},
	{"load_assignment", "is not possible: a LOGICAL_DNS cluster needs exactly one endpoint, in one locality", func(c *clusterv3.Cluster) bool {
		groups := c.GetLoadAssignment().GetEndpoints()
		return hasType(c, clusterv3.Cluster_LOGICAL_DNS) && (len(groups) != 1 || len(groups[0].GetLbEndpoints()) != 1)
	}},
	{"eds_cluster_config", "is for clusters of type EDS: write type: EDS, or remove it", func(c *clusterv3.Cluster) bool {
		return c.GetEdsClusterConfig() != nil && !hasType(c, clusterv3.Cluster_EDS)
	}},
	{"dns_failure_refresh_rate", "has a max_interval below its base_interval: raise the one, or lower the other", func(c *clusterv3.Cluster) bool {
		d := c.GetDnsFailureRefreshRate()
		return (hasType(c, clusterv3.Cluster_STRICT_DNS) || hasType(c, clusterv3.Cluster_LOGICAL_DNS)) &&
			d.GetMaxInterval() != nil && d.GetMaxInterval().AsDuration() < d.GetBaseInterval().AsDuration()
	}},
	{"outlier_detection.max_ejection_time", "is below base_ejection_time (30s where none is given): raise it, or lower that", func(c *clusterv3.Cluster) bool {
		o, minimum := c.GetOutlierDetection(), 30*time.Second
		if value := o.GetBaseEjectionTime(); value != nil {
			minimum = value.AsDuration()
		}
		return o.GetMaxEjectionTime() != nil && o.GetMaxEjectionTime().AsDuration() < minimum
	}},
	{"lb_subset_config.subset_selectors", "has a selector whose fallback_keys_subset is not a part of its keys, or without fallback_policy: KEYS_SUBSET: " +
		"give one of the two fewer keys, or remove fallback_keys_subset", func(c *clusterv3.Cluster) bool {
		return slices.ContainsFunc(c.GetLbSubsetConfig().GetSubsetSelectors(), wrongFallback)
	}},
	{"lb_subset_config.locality_weight_aware", "needs common_lb_config.locality_weighted_lb_config: give it, or remove locality_weight_aware", func(c *clusterv3.Cluster) bool {
		return c.GetLbSubsetConfig().GetLocalityWeightAware() && c.GetCommonLbConfig().GetLocalityWeightedLbConfig() == nil
	}},
	{"common_lb_config.consistent_hashing_lb_config.use_hostname_for_hashing", "is for clusters of type STRICT_DNS: remove it", func(c *clusterv3.Cluster) bool {
		return c.GetCommonLbConfig().GetConsistentHashingLbConfig().GetUseHostnameForHashing() && !hasType(c, clusterv3.Cluster_STRICT_DNS)
	}},
	{"circuit_breakers.per_host_thresholds", "may have max_connections and track_remaining only: remove the other fields", func(c *clusterv3.Cluster) bool {
		return slices.ContainsFunc(c.GetCircuitBreakers().GetPerHostThresholds(), func(t *clusterv3.CircuitBreakers_Thresholds) bool {
			return t.GetMaxPendingRequests() != nil || t.GetMaxRequests() != nil || t.GetMaxRetries() != nil || t.GetMaxConnectionPools() != nil || t.GetRetryBudget() != nil
		})
	}},
	{"transport_socket.typed_config", "is missing: give it", func(c *clusterv3.Cluster) bool {
		return c.GetTransportSocket() != nil && c.GetTransportSocket().GetTypedConfig() == nil
	}},
	{"transport_socket_matches", "has a match without transport_socket.typed_config: give it", func(c *clusterv3.Cluster) bool {
		return slices.ContainsFunc(c.GetTransportSocketMatches(), func(m *clusterv3.Cluster_TransportSocketMatch) bool {
			return m.GetTransportSocket().GetTypedConfig() == nil
		})
	}},
	{"upstream_bind_config", "needs IP addresses, at most one of IPv4 and one of IPv6, and the second in extra_source_addresses", wrongSources},
	{"health_checks", "have a gRPC check, which needs HTTP/2: give http2_protocol_options", func(c *clusterv3.Cluster) bool {
		return !hasType(c, clusterv3.Cluster_STATIC) && !hasType(c, clusterv3.Cluster_EDS) && LacksHTTP2(c)
	}},
}

// unbuildable returns the reasons why Envoy cannot build a cluster.
func unbuildable(c *clusterv3.Cluster) []yamlpb.Violation {
	var violations []yamlpb.Violation
	for _, r := range rules {
		if r.broken(c) {
			violations = append(violations, yamlpb.Violation{Field: r.field, Reason: r.reason})
		}
	}
	return append(append(violations, uncheckable(c)...), invalidExtensions(c)...)
}

// invalidExtensions returns the broken rules of the messages of Envoy's own extensions that an
// Envoy reads to build a cluster. Further requirements of an extension depend on the Envoy.
func invalidExtensions(c *clusterv3.Cluster) []yamlpb.Violation {
	extensions := map[string]*anypb.Any{
		"cluster_type.typed_config":     c.GetClusterType().GetTypedConfig(),
		"transport_socket.typed_config": c.GetTransportSocket().GetTypedConfig(),
	}
	for name, options := range c.GetTypedExtensionProtocolOptions() {
		extensions["typed_extension_protocol_options."+name] = options
	}
	for i, m := range c.GetTransportSocketMatches() {
		extensions[fmt.Sprintf("transport_socket_matches[%d].transport_socket.typed_config", i)] = m.GetTransportSocket().GetTypedConfig()
	}
	var violations []yamlpb.Violation
	for _, field := range slices.Sorted(maps.Keys(extensions)) {
		message, err := extensions[field].UnmarshalNew()
		if err != nil {
			continue // the client's own
		}
		for _, wrong := range yamlpb.Validate(message) {
			violations = append(violations, yamlpb.Violation{Field: field, Reason: wrong.Field + ": " + wrong.Reason})
		}
	}
	return violations
}

// firstPolicy returns the first load balancing policy, or nil.
func firstPolicy(c *clusterv3.Cluster) *anypb.Any {
	for _, p := range c.GetLoadBalancingPolicy().GetPolicies() {
		if config := p.GetTypedExtensionConfig().GetTypedConfig(); config != nil {
			return config
		}
	}
	return nil
}

func wrongFallback(s *clusterv3.Cluster_LbSubsetConfig_LbSubsetSelector) bool {
	fallback := s.GetFallbackKeysSubset()
	if s.GetFallbackPolicy() != clusterv3.Cluster_LbSubsetConfig_LbSubsetSelector_KEYS_SUBSET {
		return len(fallback) > 0
	}
	outside := func(key string) bool { return !slices.Contains(s.GetKeys(), key) }
	return len(fallback) == 0 || slices.ContainsFunc(fallback, outside) || len(fallback) >= len(s.GetKeys())
}

// wrongSources reports whether an Envoy refuses the source addresses of its connections.
func wrongSources(c *clusterv3.Cluster) bool {
	b := c.GetUpstreamBindConfig()
	var addresses []*corev3.SocketAddress
	if b.GetSourceAddress() != nil {
		addresses = append(addresses, b.GetSourceAddress())
	}
	for _, extra := range b.GetExtraSourceAddresses() {
		addresses = append(addresses, extra.GetAddress())
	}
	addresses = append(addresses, b.GetAdditionalSourceAddresses()...) //nolint:staticcheck // some clusters still have it
	families := map[bool]bool{}
	for _, a := range addresses {
		ip, err := netip.ParseAddr(a.GetAddress())
		if err != nil || families[ip.Is4()] {
			return true
		}
		families[ip.Is4()] = true
	}
	return b.GetSourceAddress() == nil && len(addresses) > 0
}

// builtIn reports whether a cluster is of one of Envoy's own types.
func builtIn(c *clusterv3.Cluster) bool { return c.GetClusterType() == nil }

func hasType(c *clusterv3.Cluster, kind clusterv3.Cluster_DiscoveryType) bool {
	return builtIn(c) && c.GetType() == kind
}

// balancesItself reports whether a cluster provides its own load balancing, and takes no other.
func balancesItself(c *clusterv3.Cluster) bool {
	return hasType(c, clusterv3.Cluster_ORIGINAL_DST) || c.GetClusterType().GetTypedConfig().GetTypeUrl() == aggregateCluster
}

func balances(c *clusterv3.Cluster, policy clusterv3.Cluster_LbPolicy) bool {
	return c.GetLbPolicy() == policy && c.GetLoadBalancingPolicy() == nil
}
