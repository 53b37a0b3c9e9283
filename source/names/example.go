package names

import (
	"net/netip"

	"hdsd/source"
)

// Example returns a set as it might be with every name resolved to one address, without asking a
// server; and the original of each assignment with such addresses.
func Example(set *source.Set) (*source.Set, map[*source.Assignment]*source.Assignment) {
	address := netip.AddrFrom4([4]byte{198, 18, 0, 0}) // addresses for tests of networks
	addresses := map[string]netip.Addr{}
	result := (&Rewriter{}).Apply(set, func(q Question) Answer {
		if !addresses[q.Host].IsValid() {
			address = address.Next()
			addresses[q.Host] = address
		}
		return Answer{Addresses: []netip.Addr{addresses[q.Host]}, Known: true}
	})
	originals := map[*source.Assignment]*source.Assignment{}
	for i, c := range result.Clusters {
		if c.Names != "" {
			originals[c.Assignment] = set.Clusters[i].Assignment
		}
	}
	return result, originals
}
