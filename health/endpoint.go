package health

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
)

// Locality is the place of an endpoint or a checker.
type Locality struct{ Region, Zone, SubZone string }

// Compare orders localities by region, zone and sub-zone.
func (l Locality) Compare(m Locality) int {
	return cmp.Or(cmp.Compare(l.Region, m.Region), cmp.Compare(l.Zone, m.Zone), cmp.Compare(l.SubZone, m.SubZone))
}

// Endpoint identifies an endpoint. The same address in two localities of a cluster
// is two endpoints.
type Endpoint struct {
	Cluster  string
	Locality Locality
	Address  string // ip:port, [ip6]:port or a pipe's path
}

// Compare orders endpoints by cluster, locality and address.
func (e Endpoint) Compare(f Endpoint) int {
	return cmp.Or(cmp.Compare(e.Cluster, f.Cluster), e.Locality.Compare(f.Locality), cmp.Compare(e.Address, f.Address))
}

// Hash names an endpoint in the database and in stored plans. It is the same on
// every machine and in every release.
type Hash uint64

// Hash returns the first 64 bits of a SHA-256 over the fields, each followed by a
// zero byte. A cryptographic hash, since names come from outside.
func (e Endpoint) Hash() Hash {
	return hashOf(e.Cluster, e.Locality.Region, e.Locality.Zone, e.Locality.SubZone, e.Address)
}

// ClusterHash is the Hash of a cluster's name.
func ClusterHash(name string) Hash { return hashOf(name) }

func hashOf(parts ...string) Hash {
	buffer := make([]byte, 0, 128)
	for _, part := range parts {
		buffer = append(append(buffer, part...), 0)
	}
	sum := sha256.Sum256(buffer)
	return Hash(binary.BigEndian.Uint64(sum[:8]))
}

// EndpointID is a dense number that identifies an endpoint inside one process.
type EndpointID uint32
