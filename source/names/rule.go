package names

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// rule returns how the names of a cluster are resolved, as a question without a name. ok is
// false if its type has no names that hdsd could resolve.
func rule(c *clusterv3.Cluster) (q Question, ok bool) {
	switch {
	case c.GetCommonLbConfig().GetConsistentHashingLbConfig().GetUseHostnameForHashing():
		return q, false // an Envoy uses that of STRICT_DNS clusters alone
	case c.GetClusterType() != nil:
		return extensionRule(c.GetClusterType())
	case c.GetType() == clusterv3.Cluster_STRICT_DNS, c.GetType() == clusterv3.Cluster_LOGICAL_DNS:
		q = timing(c)
		q.Family, q.Keep = c.GetDnsLookupFamily(), c.GetType() == clusterv3.Cluster_LOGICAL_DNS
		if rate := c.GetDnsFailureRefreshRate(); rate != nil {
			q.setFailure(rate)
		}
		return q, true
	}
	return q, false
}

// extensionRule is rule for a DnsCluster, which can be either of the two types. One that data
// planes refuse is left to them.
func extensionRule(c *clusterv3.Cluster_CustomClusterType) (q Question, ok bool) {
	d := &dnsv3.DnsCluster{}
	if c.GetTypedConfig().UnmarshalTo(d) != nil || d.Validate() != nil {
		return q, false
	}
	q = timing(d)
	q.LeastTTL, q.Keep = durationOr(d.GetDnsMinRefreshRate(), 0), d.GetAllAddressesInSingleEndpoint()
	if family := d.GetDnsLookupFamily(); family > 0 { // 0 is "not set". The others are one more than a Cluster's
		q.Family = clusterv3.Cluster_DnsLookupFamily(family - 1)
	}
	if rate := d.GetDnsFailureRefreshRate(); rate != nil {
		q.setFailure(rate)
	}
	return q, true
}

// timing sets the time of the next lookup after an answer.
func timing(c interface {
	GetDnsRefreshRate() *durationpb.Duration
	GetDnsJitter() *durationpb.Duration
	GetRespectDnsTtl() bool
}) Question {
	return Question{
		Refresh: durationOr(c.GetDnsRefreshRate(), defaultRefresh), Jitter: durationOr(c.GetDnsJitter(), 0), RespectTTL: c.GetRespectDnsTtl(),
	}
}

// setFailure sets the time of the next lookup after a failure. The refresh rate has to be set.
func (q *Question) setFailure(rate interface {
	GetBaseInterval() *durationpb.Duration
	GetMaxInterval() *durationpb.Duration
}) {
	q.FailureBase = durationOr(rate.GetBaseInterval(), q.Refresh)
	q.FailureMax = max(q.FailureBase, durationOr(rate.GetMaxInterval(), failureGrowth*q.FailureBase))
}

// durationOr returns a duration above zero, or a default.
func durationOr(d *durationpb.Duration, byDefault time.Duration) time.Duration {
	if d == nil || d.AsDuration() <= 0 {
		return byDefault
	}
	return d.AsDuration()
}
