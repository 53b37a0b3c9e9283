package source

import (
	"bytes"
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/internal/endpointpb"
)

// Assignment is a ClusterLoadAssignment. It is kept encoded, because there may be millions
// of endpoints, and decoded each takes fifteen times the memory. It is immutable.
type Assignment struct{ wire []byte }

// EncodeAssignment encodes an assignment. It returns nil for nil, and an empty one if the
// message has text that is not UTF-8, which no reader lets in.
func EncodeAssignment(m *endpointv3.ClusterLoadAssignment) *Assignment {
	if m == nil {
		return nil
	}
	wire, _ := endpointpb.Encode(m)
	return &Assignment{wire}
}

// EncodeAssignmentAs does the same in the memory of wire, if wire is what m was decoded from
// and just as hdsd would encode it.
func EncodeAssignmentAs(wire []byte, m *endpointv3.ClusterLoadAssignment) *Assignment {
	a := EncodeAssignment(m)
	if a != nil && bytes.Equal(a.wire, wire) {
		a.wire = wire
	}
	return a
}

// TakeEndpoints takes the endpoints out of a cluster that lists them. It returns nil for
// one that does not; what an EDS cluster lists does not count, and stays.
func TakeEndpoints(c *clusterv3.Cluster) *Assignment {
	listed := c.GetLoadAssignment()
	if listed == nil || isEDS(c) {
		return nil
	}
	c.LoadAssignment = nil
	return EncodeAssignment(listed)
}

// Message decodes the assignment, anew each time; nil if there is none.
func (a *Assignment) Message() *endpointv3.ClusterLoadAssignment {
	if a == nil {
		return nil
	}
	return endpointpb.Decode(a.wire)
}

// Wire returns the encoded assignment. It must not be changed.
func (a *Assignment) Wire() []byte {
	if a == nil {
		return nil
	}
	return a.wire
}

// Equal reports whether two assignments say the same.
func (a *Assignment) Equal(b *Assignment) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || bytes.Equal(a.wire, b.wire)
}

// AddWeight adds the load balancing weight of one endpoint to another. None counts as 1. The
// sum is as large as it may be.
func AddWeight(to, from *endpointv3.LbEndpoint) {
	weight := func(e *endpointv3.LbEndpoint) uint64 {
		if e.GetLoadBalancingWeight() == nil {
			return 1
		}
		return uint64(e.GetLoadBalancingWeight().GetValue())
	}
	to.LoadBalancingWeight = wrapperspb.UInt32(uint32(min(weight(to)+weight(from), math.MaxUint32)))
}
