package names

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/source"
)

// Question is a name to resolve, with the timing of its cluster.
type Question struct {
	Host       string
	Family     clusterv3.Cluster_DnsLookupFamily
	Refresh    time.Duration // until the next lookup after an answer
	Jitter     time.Duration // added to it at random, up to this
	RespectTTL bool          // the answer's TTL takes the place of Refresh
	LeastTTL   time.Duration // takes the place of a shorter TTL

	// After a failure: from FailureBase up to FailureMax, twice as long each time. 0:
	// Refresh.
	FailureBase, FailureMax time.Duration

	// Keep is set for LOGICAL_DNS, which has one address, and keeps it when DNS has none any
	// more.
	Keep bool

	// Retain is set if addresses that DNS no longer returns stay while they are healthy
	// (ignore_health_on_host_removal of the cluster is false).
	Retain bool
}

// Envoy's defaults.
const (
	defaultRefresh = 5 * time.Second
	failureGrowth  = 10 // dns_failure_refresh_rate.max_interval, in base_intervals
)

// questions returns the names to resolve for a cluster, each once; nil if there are none, or
// only data planes can resolve them.
func questions(c *source.Cluster) []Question {
	if c.Rejected != "" || c.Config == nil || c.Assignment == nil {
		return nil
	}
	model, ok := rule(c.Config)
	if !ok {
		return nil
	}
	assignment := c.Assignment.Message()
	if model.Keep && !hasOneEndpoint(assignment) {
		return nil
	}
	model.Retain = !model.Keep && !c.Config.GetIgnoreHealthOnHostRemoval()
	var list []Question
	for _, group := range assignment.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			endpoint := e.GetEndpoint()
			for _, additional := range endpoint.GetAdditionalAddresses() {
				if isName(additional.GetAddress()) {
					return nil
				}
			}
			if !isName(endpoint.GetAddress()) {
				continue
			}
			socket := endpoint.GetAddress().GetSocketAddress()
			if socket.GetResolverName() != "" || socket.GetNamedPort() != "" || socket.GetAddress() == "" {
				return nil
			}
			if model.Host = hostOf(socket.GetAddress()); !slices.Contains(list, model) {
				list = append(list, model)
			}
		}
	}
	return list
}

// hostOf maps equivalent names to one. A dot at the end stays: it marks a complete name.
func hostOf(name string) string { return strings.ToLower(name) }

// hasOneEndpoint reports whether there is exactly one endpoint. Envoy requires that for a
// cluster with a single address.
func hasOneEndpoint(a *endpointv3.ClusterLoadAssignment) bool {
	groups := a.GetEndpoints()
	return len(groups) == 1 && len(groups[0].GetLbEndpoints()) == 1
}

// isName reports whether an address has to be resolved.
func isName(a *corev3.Address) bool {
	address := a.GetSocketAddress()
	if address == nil {
		return false
	}
	_, err := netip.ParseAddr(address.GetAddress())
	return err != nil || address.GetResolverName() != ""
}
