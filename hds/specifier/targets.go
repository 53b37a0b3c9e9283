package specifier

import (
	"net/netip"
	"slices"
)

// Targets are the addresses that checkers may probe: those in Allow (if that is empty, all but
// link-local, multicast and unspecified ones), without those in Deny.
type Targets struct {
	Allow, Deny []netip.Prefix
}

// refusal says why an IP address may not be probed; empty: it may be.
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
