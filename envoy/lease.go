package envoy

import (
	"slices"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
)

// Lease returns how long the endpoints of an encoded EDS assignment stay in use without renewal.
// As an Envoy does, it takes policy.endpoint_stale_after in whole milliseconds; 0: they stay.
func Lease(wire []byte) time.Duration {
	packed, err := fields.Message(wire, fields.AssignmentPolicy)
	policy := &endpointv3.ClusterLoadAssignment_Policy{}
	if err != nil || len(packed) == 0 || proto.Unmarshal(packed, policy) != nil {
		return 0
	}
	return max(policy.GetEndpointStaleAfter().AsDuration().Truncate(time.Millisecond), 0)
}

// WithLease returns an encoded ClusterLoadAssignment with another lease, in whole milliseconds.
// It comes last: of a repeated field, the last one counts.
func WithLease(wire []byte, left time.Duration) []byte {
	duration := fields.AppendDuration(nil, left.Truncate(time.Millisecond))
	return fields.AppendBytes(slices.Clip(wire), fields.AssignmentPolicy, fields.AppendBytes(nil, fields.PolicyStaleAfter, duration))
}
