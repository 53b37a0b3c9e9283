package source

import (
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// assignmentPolicy is a field number of ClusterLoadAssignment.
const assignmentPolicy = 4

// Lease returns how long the endpoints of an encoded EDS assignment stay in use if nothing
// renews them. As an Envoy does, it takes policy.endpoint_stale_after in whole milliseconds; 0:
// they stay.
func Lease(wire []byte) time.Duration {
	var packed []byte // occurrences of one message are merged
	for len(wire) > 0 {
		number, kind, head := protowire.ConsumeTag(wire)
		if head < 0 {
			return 0
		}
		size := protowire.ConsumeFieldValue(number, kind, wire[head:])
		if size < 0 {
			return 0
		}
		if number == assignmentPolicy && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(wire[head:])
			packed = append(packed, value...)
		}
		wire = wire[head+size:]
	}
	policy := &endpointv3.ClusterLoadAssignment_Policy{}
	if len(packed) == 0 || proto.Unmarshal(packed, policy) != nil {
		return 0
	}
	return max(policy.GetEndpointStaleAfter().AsDuration().Truncate(time.Millisecond), 0)
}

// Ended returns an assignment whose lease is over: it has no endpoints, as in an Envoy.
func Ended(name string) *Assignment {
	return EncodeAssignment(&endpointv3.ClusterLoadAssignment{ClusterName: name})
}
