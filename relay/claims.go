package relay

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"

	"hdsd/internal/share"
)

// claimsPerName is how many claims count as one name towards limits.max_subscriptions. They
// take as much memory as a name of 256 bytes.
const claimsPerName = 16

// claims are the versions that a client says it has of resources that it was not sent on its
// stream, until the control plane sends or removes these. They belong to a ledger.
type claims struct {
	take  func(names int64) (*share.Lease, error) // of limits.max_subscriptions
	lease *share.Lease                            // nil: there are none, or nothing bounds them
	all   []claim                                 // by name
	left  int                                     // that are not settled
}

// claim is a name and its version, as hashes: a client can mislead only itself.
type claim struct{ name, version uint64 }

// settled is the version of a claim that the control plane has answered.
const settled = 0

func claimOf(name, version string) claim {
	return claim{xxhash.Sum64String(name), max(xxhash.Sum64String(version), settled+1)}
}

// set replaces all claims. Without room for them there are none, so that the client is sent
// again what it has.
func (c *claims) set(all []claim) {
	c.clear()
	if len(all) == 0 {
		return
	}
	lease, err := c.take(int64((len(all) + claimsPerName - 1) / claimsPerName))
	if err != nil {
		return
	}
	slices.SortFunc(all, func(a, b claim) int { return cmp.Compare(a.name, b.name) })
	c.all, c.left, c.lease = slices.Clip(all), len(all), lease
}

// settle forgets a claim. It reports whether there was one, and whether the client said that it
// has this version.
func (c *claims) settle(name, version string) (claimed, same bool) {
	if c.left == 0 {
		return false, false
	}
	now := claimOf(name, version)
	at, found := slices.BinarySearchFunc(c.all, now.name, func(x claim, name uint64) int { return cmp.Compare(x.name, name) })
	if !found || c.all[at].version == settled {
		return false, false
	}
	same = c.all[at].version == now.version
	c.all[at].version = settled
	if c.left--; c.left == 0 {
		c.clear()
	}
	return true, same
}

func (c *claims) clear() {
	c.lease.Release()
	c.all, c.left, c.lease = nil, 0, nil
}
