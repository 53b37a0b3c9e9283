package publish

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/envoy/fields"
	"hdsd/health"
)

// Key is an endpoint of an assignment.
type Key struct {
	Locality health.Locality
	Address  string
}

// HealthOf returns the health to publish of an endpoint, given that of the control plane; false
// if hdsd has none.
type HealthOf func(key Key, status health.Status) (health.Status, bool)

// OverlayCluster returns an encoded Cluster with the health of the endpoints that it lists, and
// without its health checks if it is checked.
func OverlayCluster(wire []byte, checked bool, healthOf HealthOf) ([]byte, error) {
	return fields.Rewrite(wire, 0, func(f *fields.Field) ([]byte, fields.Action, error) {
		switch {
		case checked && f.Is(fields.ClusterHealthChecks):
			return nil, fields.Drop, nil
		case f.Is(fields.ClusterAssignment):
			return f.To(OverlayAssignment(f.Value, healthOf))
		}
		return nil, fields.Keep, nil
	})
}

// OverlayAssignment returns an encoded ClusterLoadAssignment with the health of its endpoints.
func OverlayAssignment(wire []byte, healthOf HealthOf) ([]byte, error) {
	return fields.Rewrite(wire, 0, func(f *fields.Field) ([]byte, fields.Action, error) {
		if !f.Is(fields.AssignmentLocalities) {
			return nil, fields.Keep, nil
		}
		return f.To(group(f.Value, healthOf))
	})
}

// group puts health into the endpoints of one locality.
func group(wire []byte, healthOf HealthOf) ([]byte, error) {
	locality, err := localityOf(wire)
	if err != nil {
		return nil, err
	}
	return fields.Rewrite(wire, 0, func(f *fields.Field) ([]byte, fields.Action, error) {
		if !f.Is(fields.LocalityEndpoints) {
			return nil, fields.Keep, nil
		}
		return f.To(endpoint(f.Value, locality, healthOf))
	})
}

func localityOf(group []byte) (health.Locality, error) {
	wire, err := fields.Message(group, fields.LocalityName)
	if err != nil || len(wire) == 0 {
		return health.Locality{}, err
	}
	locality := &corev3.Locality{}
	if err := proto.Unmarshal(wire, locality); err != nil {
		return health.Locality{}, fmt.Errorf("read a locality: %w", err)
	}
	return envoy.Locality(locality), nil
}

func endpoint(wire []byte, locality health.Locality, healthOf HealthOf) ([]byte, error) {
	var inner []byte
	var value uint64
	if err := fields.Each(wire, func(f *fields.Field) bool {
		switch {
		case f.Is(fields.LbEndpointEndpoint):
			inner = fields.Merge(inner, f.Value)
		case f.IsNumber(fields.LbEndpointHealth):
			value = f.Varint()
		}
		return true
	}); err != nil {
		return nil, err
	}
	packed, err := fields.Message(inner, fields.EndpointAddress)
	if err != nil {
		return nil, err
	}
	address := &corev3.Address{}
	if err := proto.Unmarshal(packed, address); err != nil {
		return nil, fmt.Errorf("read an address: %w", err)
	}
	text := envoy.Address(address)
	if text == "" {
		return wire, nil
	}
	status, decided := healthOf(Key{locality, text}, Status(int64(int32(value))))
	if !decided || uint64(status) == value {
		return wire, nil
	}
	return fields.WithNumber(wire, fields.LbEndpointHealth, uint64(status))
}
