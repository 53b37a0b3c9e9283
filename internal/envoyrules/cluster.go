package envoyrules

import (
	"math/big"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"hdsd/internal/yamlpb"
)

// rule is a requirement of Envoy when it builds a cluster, beyond the rules of the
// message. It has only requirements of every release and build: an extension may be the
// user's own.
type rule struct {
	field, reason string
	broken        func(*clusterv3.Cluster) bool
}

var rules = []rule{
	{"lb_policy", "is not possible in an ORIGINAL_DST cluster: write CLUSTER_PROVIDED", func(c *clusterv3.Cluster) bool {
		return of(c, clusterv3.Cluster_ORIGINAL_DST) && c.GetLbPolicy() != clusterv3.Cluster_CLUSTER_PROVIDED
	}},
	{"load_assignment", "is not possible: an ORIGINAL_DST cluster finds its endpoints itself, so remove it", func(c *clusterv3.Cluster) bool {
		return of(c, clusterv3.Cluster_ORIGINAL_DST) && c.GetLoadAssignment() != nil
	}},
	{"original_dst_lb_config.http_header_name", "counts with use_http_header only: write use_http_header: true", func(c *clusterv3.Cluster) bool {
		o := c.GetOriginalDstLbConfig()
		return of(c, clusterv3.Cluster_ORIGINAL_DST) && o.GetHttpHeaderName() != "" && !o.GetUseHttpHeader()
	}},
	{"lb_policy", "is not possible: a cluster of this type provides no load balancing of its own; choose another, such as ROUND_ROBIN", func(c *clusterv3.Cluster) bool {
		return builtIn(c) && !of(c, clusterv3.Cluster_ORIGINAL_DST) && c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED && c.GetLoadBalancingPolicy() == nil
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
		least, most := uint64(1024), uint64(8<<20)
		if given := r.GetMinimumRingSize(); given != nil {
			least = given.GetValue()
		}
		if given := r.GetMaximumRingSize(); given != nil {
			most = given.GetValue()
		}
		return balances(c, clusterv3.Cluster_RING_HASH) && least > most
	}},
	{"maglev_lb_config.table_size", "has to be a prime number: write one, such as 65537", func(c *clusterv3.Cluster) bool {
		size := c.GetMaglevLbConfig().GetTableSize()
		return balances(c, clusterv3.Cluster_MAGLEV) && size != nil && size.GetValue() != 1 && !new(big.Int).SetUint64(size.GetValue()).ProbablyPrime(0)
	}},
	{"load_assignment", "is not possible: a LOGICAL_DNS cluster needs exactly one endpoint, in one locality", func(c *clusterv3.Cluster) bool {
		groups := c.GetLoadAssignment().GetEndpoints()
		return of(c, clusterv3.Cluster_LOGICAL_DNS) && (len(groups) != 1 || len(groups[0].GetLbEndpoints()) != 1)
	}},
	{"eds_cluster_config", "is for clusters of type EDS: write type: EDS, or remove it", func(c *clusterv3.Cluster) bool {
		return c.GetEdsClusterConfig() != nil && builtIn(c) && !of(c, clusterv3.Cluster_EDS)
	}},
	{"dns_failure_refresh_rate", "has a max_interval below its base_interval: raise the one, or lower the other", func(c *clusterv3.Cluster) bool {
		d := c.GetDnsFailureRefreshRate()
		return (of(c, clusterv3.Cluster_STRICT_DNS) || of(c, clusterv3.Cluster_LOGICAL_DNS)) &&
			d.GetMaxInterval() != nil && d.GetMaxInterval().AsDuration() < d.GetBaseInterval().AsDuration()
	}},
	{"outlier_detection.max_ejection_time", "is below base_ejection_time (30s where none is given): raise it, or lower that", func(c *clusterv3.Cluster) bool {
		o, least := c.GetOutlierDetection(), 30*time.Second
		if given := o.GetBaseEjectionTime(); given != nil {
			least = given.AsDuration()
		}
		return o.GetMaxEjectionTime() != nil && o.GetMaxEjectionTime().AsDuration() < least
	}},
}

// unbuildable returns why Envoy cannot build a cluster.
func unbuildable(c *clusterv3.Cluster) []yamlpb.Violation {
	var all []yamlpb.Violation
	for _, r := range rules {
		if r.broken(c) {
			all = append(all, yamlpb.Violation{Field: r.field, Reason: r.reason})
		}
	}
	return all
}

// builtIn reports whether a cluster is of one of Envoy's own types.
func builtIn(c *clusterv3.Cluster) bool { return c.GetClusterType() == nil }

func of(c *clusterv3.Cluster, kind clusterv3.Cluster_DiscoveryType) bool {
	return builtIn(c) && c.GetType() == kind
}

func balances(c *clusterv3.Cluster, policy clusterv3.Cluster_LbPolicy) bool {
	return c.GetLbPolicy() == policy && c.GetLoadBalancingPolicy() == nil
}
