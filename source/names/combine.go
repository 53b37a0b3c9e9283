package names

import (
	"net/netip"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// half is the answer about the A or the AAAA records of a name. At most one of addresses, none
// and failure is set; none of them, if it was not requested.
type half struct {
	addresses  []netip.Addr
	ttl        time.Duration
	noneReason string // reason why there are none, by the server
	failure    string // reason why there is no answer
}

// outcome is the result of a lookup. At most one of its fields but ttl is set.
type outcome struct {
	addresses  []netip.Addr
	ttl        time.Duration
	noneReason string
	failure    string
}

// asks returns the kinds of records that a family needs.
func asks(family clusterv3.Cluster_DnsLookupFamily) (v4, v6 bool) {
	return family != clusterv3.Cluster_V6_ONLY, family != clusterv3.Cluster_V4_ONLY
}

// combineHalves makes one outcome of the answers about both kinds of records, as Envoy does. If
// one kind fails, and addresses of it are in use, the outcome is a failure: so a lookup that
// half failed removes nothing.
func combine(family clusterv3.Cluster_DnsLookupFamily, inUse []netip.Addr, v4, v6 half) outcome {
	switch family {
	case clusterv3.Cluster_V4_ONLY:
		return outcome(v4)
	case clusterv3.Cluster_V6_ONLY:
		return outcome(v6)
	case clusterv3.Cluster_ALL:
		return combineHalves(inUse, v4, v6)
	case clusterv3.Cluster_V4_PREFERRED:
		return prefer(inUse, v4, v6, netip.Addr.Is4)
	default:
		return prefer(inUse, v6, v4, netip.Addr.Is6)
	}
}

// prefer returns the first kind, or the second if the first has no addresses.
func prefer(inUse []netip.Addr, first, second half, isFirst func(netip.Addr) bool) outcome {
	switch {
	case len(first.addresses) > 0:
		return outcome(first)
	case first.failure != "" && (len(second.addresses) == 0 || slices.ContainsFunc(inUse, isFirst)):
		return outcome{failure: first.failure}
	default:
		return outcome(second)
	}
}

func combineHalves(inUse []netip.Addr, v4, v6 half) outcome {
	for _, family := range []struct {
		half
		matches func(netip.Addr) bool
	}{{v4, netip.Addr.Is4}, {v6, netip.Addr.Is6}} {
		if family.failure != "" && (len(v4.addresses)+len(v6.addresses) == 0 || slices.ContainsFunc(inUse, family.matches)) {
			return outcome{failure: family.failure}
		}
	}
	addresses := slices.Concat(v4.addresses, v6.addresses)
	if len(addresses) == 0 {
		return outcome{noneReason: v4.noneReason}
	}
	ttl := v4.ttl
	if len(v4.addresses) == 0 || len(v6.addresses) > 0 && v6.ttl < ttl {
		ttl = v6.ttl
	}
	return outcome{addresses: addresses, ttl: ttl}
}
