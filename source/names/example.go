package names

import (
	"net/netip"

	"hdsd/source"
)

// Example returns a set as it might be with every name resolved to one address, without
// asking anybody; and of each assignment in it that has such addresses, the original.
func Example(set *source.Set) (*source.Set, map[*source.Assignment]*source.Assignment) {
	address := netip.AddrFrom4([4]byte{198, 18, 0, 0}) // addresses for tests of networks
	by := map[string]netip.Addr{}
	out := (&Rewriter{}).Take(set, func(q Question) Answer {
		if !by[q.Host].IsValid() {
			address = address.Next()
			by[q.Host] = address
		}
		return Answer{Addresses: []netip.Addr{by[q.Host]}, Known: true}
	})
	originals := map[*source.Assignment]*source.Assignment{}
	for i, c := range out.Clusters {
		if c.Names != "" {
			originals[c.Assignment] = set.Clusters[i].Assignment
		}
	}
	return out, originals
}
