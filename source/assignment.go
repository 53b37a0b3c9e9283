package source

import (
	"bytes"
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/envoy"
)

// Assignment is a ClusterLoadAssignment. It is kept encoded, because there may be millions
// of endpoints, and decoded each takes fifteen times the memory. It is immutable.
type Assignment struct{ wire []byte }

// EncodeAssignment encodes an assignment. It returns nil for nil, and an empty one if the
// message has invalid UTF-8, which every reader refuses.
func EncodeAssignment(m *endpointv3.ClusterLoadAssignment) *Assignment {
	if m == nil {
		return nil
	}
	wire, _ := envoy.EncodeAssignment(m)
	return &Assignment{wire}
}

// EncodeAssignmentAs is EncodeAssignment in the memory of wire, if m was decoded from wire and
// hdsd would encode it in the same way.
func EncodeAssignmentAs(wire []byte, m *endpointv3.ClusterLoadAssignment) *Assignment {
	a := EncodeAssignment(m)
	if a != nil && bytes.Equal(a.wire, wire) {
		a.wire = wire
	}
	return a
}

// TakeEndpoints removes the endpoints of a cluster that lists them, and returns them. It returns
// nil for other clusters; endpoints listed in an EDS cluster do not count, and stay.
func TakeEndpoints(c *clusterv3.Cluster) *Assignment {
	listed := c.GetLoadAssignment()
	if listed == nil || envoy.IsEDS(c) {
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
	return envoy.DecodeAssignment(a.wire)
}

// Wire returns the encoded assignment. It must not be changed.
func (a *Assignment) Wire() []byte {
	if a == nil {
		return nil
	}
	return a.wire
}

// Equal reports whether two assignments are equal.
func (a *Assignment) Equal(b *Assignment) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || bytes.Equal(a.wire, b.wire)
}

// AddWeight adds the load balancing weight of one endpoint to another. None counts as 1. The sum
// saturates.
func AddWeight(to, from *endpointv3.LbEndpoint) {
	weight := func(e *endpointv3.LbEndpoint) uint64 {
		if e.GetLoadBalancingWeight() == nil {
			return 1
		}
		return uint64(e.GetLoadBalancingWeight().GetValue())
	}
	to.LoadBalancingWeight = wrapperspb.UInt32(uint32(min(weight(to)+weight(from), math.MaxUint32)))
}
