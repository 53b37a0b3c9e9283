package specifier

import (
	"net/netip"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Targets are the addresses that checkers may probe: those in Allow (if that is empty, all but
// link-local, multicast and unspecified ones), without those in Deny.
type Targets struct {
	Allow, Deny []netip.Prefix
}

// refusal returns the reason why an IP address may not be probed; empty: it may be.
func (t *Targets) refusal(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case slices.ContainsFunc(t.Deny, contains):
		return "checkers.probe_targets.deny has it"
	case slices.ContainsFunc(t.Allow, contains):
		return ""
	case len(t.Allow) > 0:
		return "checkers.probe_targets.allow does not have it"
	case a.IsUnspecified():
		return "it is unspecified, and names no machine; give the endpoint's own address"
	case a.IsMulticast():
		return "it is a multicast address; if it is meant, add it to checkers.probe_targets.allow"
	case a.IsLinkLocalUnicast():
		return "it is a link-local address; if it is meant, add it to checkers.probe_targets.allow"
	}
	return ""
}

// Target returns the IP address to which the probes of a checked endpoint go. It is invalid for a pipe.
func (c *Cluster) Target(index int) netip.Addr {
	e := &c.Endpoints[index]
	if override := e.special.GetHealthCheckConfig().GetAddress(); override != nil {
		address, _ := netip.ParseAddr(override.GetSocketAddress().GetAddress()) // valid by the review; else a pipe
		return address.Unmap()
	}
	address, _ := netip.ParseAddrPort(e.Address)
	return address.Addr().Unmap()
}

// SameTarget reports whether the probes of two checked endpoints go to the same address.
func SameTarget(c *Cluster, index int, other *Cluster, otherIndex int) bool {
	a, b := &c.Endpoints[index], &other.Endpoints[otherIndex]
	return a.special == nil && b.special == nil && a.Address == b.Address || c.Target(index) == other.Target(otherIndex)
}

// ShortestInterval returns the shortest interval between the probes of a check, as sent to
// checkers.
func ShortestInterval(check *corev3.HealthCheck) time.Duration {
	shortest := min(check.GetNoTrafficInterval().AsDuration(), check.GetNoTrafficHealthyInterval().AsDuration())
	if !isRedis(check) { // Redis connections count as traffic
		return shortest
	}
	shortest = min(shortest, check.GetInterval().AsDuration())
	for _, other := range []*durationpb.Duration{check.GetUnhealthyInterval(), check.GetUnhealthyEdgeInterval(), check.GetHealthyEdgeInterval()} {
		if other != nil {
			shortest = min(shortest, other.AsDuration())
		}
	}
	return shortest
}
