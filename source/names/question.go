package names

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/source"
)

// Question is a name to resolve, and how often, as its cluster says.
type Question struct {
	Host       string
	Family     clusterv3.Cluster_DnsLookupFamily
	Refresh    time.Duration // until the next lookup after an answer
	Jitter     time.Duration // added to it at random, up to this
	RespectTTL bool          // the answer's TTL takes the place of Refresh

	// After a failure: from FailureBase up to FailureMax, twice as long each time. 0:
	// Refresh.
	FailureBase, FailureMax time.Duration

	// Keep is set for LOGICAL_DNS, which keeps its address when DNS has none any more.
	Keep bool
}

// Envoy's defaults.
const (
	defaultRefresh = 5 * time.Second
	failureGrowth  = 10 // dns_failure_refresh_rate.max_interval, in base_intervals
)

// questions returns what has to be resolved for a cluster, each once; nil if there is
// nothing, or something that only data planes can resolve.
func questions(c *source.Cluster) []Question {
	if c.Rejected != "" || c.Config.GetClusterType() != nil || c.Assignment == nil {
		return nil
	}
	kind := c.Config.GetType()
	if c.Config == nil || kind != clusterv3.Cluster_STRICT_DNS && kind != clusterv3.Cluster_LOGICAL_DNS {
		return nil
	}
	model := Question{
		Family: c.Config.GetDnsLookupFamily(), Refresh: durationOr(c.Config.GetDnsRefreshRate(), defaultRefresh),
		Jitter: durationOr(c.Config.GetDnsJitter(), 0), RespectTTL: c.Config.GetRespectDnsTtl(),
		Keep: kind == clusterv3.Cluster_LOGICAL_DNS,
	}
	if rate := c.Config.GetDnsFailureRefreshRate(); rate != nil {
		model.FailureBase = durationOr(rate.GetBaseInterval(), model.Refresh)
		model.FailureMax = max(model.FailureBase, durationOr(rate.GetMaxInterval(), failureGrowth*model.FailureBase))
	}
	var all []Question
	for _, group := range c.Assignment.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			at := e.GetEndpoint()
			for _, more := range at.GetAdditionalAddresses() {
				if isName(more.GetAddress()) {
					return nil
				}
			}
			if !isName(at.GetAddress()) {
				continue
			}
			socket := at.GetAddress().GetSocketAddress()
			if socket.GetResolverName() != "" || socket.GetNamedPort() != "" || socket.GetAddress() == "" {
				return nil
			}
			if model.Host = hostOf(socket.GetAddress()); !slices.Contains(all, model) {
				all = append(all, model)
			}
		}
	}
	return all
}

// hostOf makes names that mean the same equal. A dot at the end stays: it says that the
// name is complete.
func hostOf(name string) string { return strings.ToLower(name) }

// durationOr returns a duration above zero, or a default.
func durationOr(d *durationpb.Duration, byDefault time.Duration) time.Duration {
	if d == nil || d.AsDuration() <= 0 {
		return byDefault
	}
	return d.AsDuration()
}

// isName reports whether an address has to be resolved.
func isName(a *corev3.Address) bool {
	at := a.GetSocketAddress()
	if at == nil {
		return false
	}
	_, err := netip.ParseAddr(at.GetAddress())
	return err != nil || at.GetResolverName() != ""
}
