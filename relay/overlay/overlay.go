package overlay

import (
	"fmt"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
	"hdsd/internal/envoyaddr"
	"hdsd/internal/fields"
)

// Field numbers of Cluster, ClusterLoadAssignment and its Policy, Duration,
// LocalityLbEndpoints, LbEndpoint and Endpoint.
const (
	clusterChecks        = 8
	clusterAssignment    = 33
	assignmentLocalities = 2
	assignmentPolicy     = 4
	policyStaleAfter     = 4
	localityLocality     = 1
	localityEndpoints    = 2
	lbEndpoint           = 1
	lbHealth             = 2
	endpointAddress      = 1
)

// Key is an endpoint of an assignment.
type Key struct {
	Locality health.Locality
	Address  string
}

// Health returns the health to publish of an endpoint, given what the control plane says
// of it; false where hdsd says nothing of it.
type Health func(of Key, says health.Status) (health.Status, bool)

// Cluster returns an encoded Cluster with the health of the endpoints that it lists, and
// without its health checks if it is checked.
func Cluster(wire []byte, checked bool, of Health) ([]byte, error) {
	return fields.Rewrite(wire, func(f *fields.Field) ([]byte, fields.Action, error) {
		switch {
		case checked && f.Is(clusterChecks):
			return nil, fields.Drop, nil
		case f.Is(clusterAssignment):
			return f.To(Assignment(f.Value, of))
		}
		return nil, fields.Keep, nil
	})
}

// Assignment returns an encoded ClusterLoadAssignment with the health of its endpoints.
func Assignment(wire []byte, of Health) ([]byte, error) {
	return fields.Rewrite(wire, func(f *fields.Field) ([]byte, fields.Action, error) {
		if !f.Is(assignmentLocalities) {
			return nil, fields.Keep, nil
		}
		return f.To(group(f.Value, of))
	})
}

// Lease returns an encoded ClusterLoadAssignment with another policy.endpoint_stale_after, in
// whole milliseconds. It comes last: of a field that is there twice, the last one counts.
func Lease(wire []byte, left time.Duration) []byte {
	duration := fields.AppendDuration(nil, left.Truncate(time.Millisecond))
	return fields.AppendBytes(slices.Clip(wire), assignmentPolicy, fields.AppendBytes(nil, policyStaleAfter, duration))
}

// group puts health into the endpoints of one locality.
func group(wire []byte, of Health) ([]byte, error) {
	at, err := localityOf(wire)
	if err != nil {
		return nil, err
	}
	return fields.Rewrite(wire, func(f *fields.Field) ([]byte, fields.Action, error) {
		if !f.Is(localityEndpoints) {
			return nil, fields.Keep, nil
		}
		return f.To(endpoint(f.Value, at, of))
	})
}

func localityOf(group []byte) (health.Locality, error) {
	var wire []byte
	if err := fields.Each(group, func(f *fields.Field) bool {
		if f.Is(localityLocality) {
			wire = merge(wire, f.Value)
		}
		return true
	}); err != nil || len(wire) == 0 {
		return health.Locality{}, err
	}
	at := &corev3.Locality{}
	if err := proto.Unmarshal(wire, at); err != nil {
		return health.Locality{}, fmt.Errorf("read a locality: %w", err)
	}
	return envoyaddr.Locality(at), nil
}

func endpoint(wire []byte, at health.Locality, of Health) ([]byte, error) {
	var inner []byte
	var says uint64
	if err := fields.Each(wire, func(f *fields.Field) bool {
		switch {
		case f.Is(lbEndpoint):
			inner = merge(inner, f.Value)
		case f.IsNumber(lbHealth):
			says = f.Varint()
		}
		return true
	}); err != nil {
		return nil, err
	}
	var packed []byte
	if err := fields.Each(inner, func(f *fields.Field) bool {
		if f.Is(endpointAddress) {
			packed = merge(packed, f.Value)
		}
		return true
	}); err != nil {
		return nil, err
	}
	address := &corev3.Address{}
	if err := proto.Unmarshal(packed, address); err != nil {
		return nil, fmt.Errorf("read an address: %w", err)
	}
	text := envoyaddr.Address(address)
	if text == "" {
		return wire, nil
	}
	is, ours := of(Key{at, text}, status(says))
	if !ours || uint64(is) == says {
		return wire, nil
	}
	return fields.WithNumber(wire, lbHealth, uint64(is))
}

// merge returns what two occurrences of one message are together.
func merge(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return slices.Concat(a, b)
}

// status is a health_status as hdsd understands it. A value that it does not know is
// Unknown, as it is to Envoy.
func status(value uint64) health.Status {
	if value > 255 || !health.Status(value).Valid() {
		return health.Unknown
	}
	return health.Status(value)
}
