package file

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"hdsd/source"
)

// sum is the digest of a cluster without its place in the file.
type sum [sha256.Size]byte

// keep returns unchanged clusters by their previous pointers, and unreadable ones with
// their last valid content.
func (s *Source) keep(clusters []*source.Cluster) []*source.Cluster {
	before := make(map[string]*source.Cluster)
	if s.last != nil {
		for _, c := range s.last.Clusters {
			before[c.Name] = c
		}
	}
	for _, c := range clusters {
		if old := before[c.Name]; old != nil && c.Rejected != "" {
			restore(c, old)
		}
	}
	found := make([]sum, len(clusters))
	eachInParallel(len(clusters), func(i int) { found[i] = sumOf(clusters[i]) })
	sums := make(map[string]sum, len(clusters))
	for i, c := range clusters {
		sums[c.Name] = found[i]
		if old := before[c.Name]; old != nil && s.sums[c.Name] == found[i] {
			clusters[i] = old
		}
	}
	s.sums = sums
	return clusters
}

func restore(c, old *source.Cluster) {
	unread := c.Config == nil
	if unread {
		c.Config, c.HealthChecks, c.ServiceName = old.Config, old.HealthChecks, old.ServiceName
	}
	if c.Assignment == nil && (unread || c.EDS()) {
		c.Assignment = old.Assignment
	}
}

func sumOf(c *source.Cluster) sum {
	var buffer []byte
	part := func(data []byte) {
		buffer = binary.AppendUvarint(buffer, uint64(len(data)))
		buffer = append(buffer, data...)
	}
	encoded := func(data []byte, present bool) {
		if !present {
			part(nil)
			return
		}
		part(append([]byte{1}, data...))
	}
	part([]byte(c.ServiceName))
	part([]byte(c.Rejected))
	part(fmt.Append(nil, c.Lone))
	config, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.Config)
	encoded(config, err == nil && c.Config != nil)
	encoded(c.Assignment.Wire(), c.Assignment != nil)
	return sha256.Sum256(buffer)
}
