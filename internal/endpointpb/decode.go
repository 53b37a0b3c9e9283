package endpointpb

import (
	"math"

	"hdsd/internal/fields"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fields of ClusterLoadAssignment, LocalityLbEndpoints, LbEndpoint, Endpoint, Address and
// SocketAddress.
const (
	assignmentName   = 1
	assignmentGroups = 2
	groupLocality    = 1
	groupEndpoints   = 2
	lbEndpoint       = 1
	endpointAddress  = 1
	addressSocket    = 1
	socketAddress    = 2
	socketPort       = 3
)

// Decode decodes a valid ClusterLoadAssignment. Of an invalid one, it returns what can be
// decoded.
func Decode(wire []byte) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{}
	var rest []byte
	_ = fields.Each(wire, func(f *fields.Field) bool {
		if f.Is(assignmentGroups) {
			a.Endpoints = append(a.Endpoints, decodeGroup(f.Value))
		} else {
			rest = append(rest, f.Raw...)
		}
		return true
	})
	_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, a)
	return a
}

func decodeGroup(wire []byte) *endpointv3.LocalityLbEndpoints {
	g := &endpointv3.LocalityLbEndpoints{LbEndpoints: make([]*endpointv3.LbEndpoint, 0, len(wire)/plainBytes)}
	var rest []byte
	var maker Maker
	_ = fields.Each(wire, func(f *fields.Field) bool {
		if !f.Is(groupEndpoints) {
			rest = append(rest, f.Raw...)
			return true
		}
		var e *endpointv3.LbEndpoint
		if host, port, plain := plainEndpoint(f.Value); plain {
			e = maker.Endpoint(string(host), port)
		} else {
			e = &endpointv3.LbEndpoint{}
			_ = proto.Unmarshal(f.Value, e)
		}
		g.LbEndpoints = append(g.LbEndpoints, e)
		return true
	})
	_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, g)
	return g
}

// plainBytes is about how many bytes an encoded plain endpoint has.
const plainBytes = 22

// plainEndpoint reads an LbEndpoint that is an address and a port, encoded in the usual order.
func plainEndpoint(wire []byte) (host []byte, port uint32, ok bool) {
	for _, number := range []protowire.Number{lbEndpoint, endpointAddress, addressSocket} {
		value, rest := field(wire, number)
		if value == nil || len(rest) > 0 {
			return nil, 0, false
		}
		wire = value
	}
	host, rest := field(wire, socketAddress)
	if host == nil || len(rest) < 2 || rest[0] != byte(protowire.EncodeTag(socketPort, protowire.VarintType)) || !isASCII(host) {
		return nil, 0, false
	}
	n, size := protowire.ConsumeVarint(rest[1:])
	if size != len(rest)-1 || n > math.MaxUint32 {
		return nil, 0, false
	}
	return host, uint32(n), true
}

// field reads a field that a message begins with. value is nil if it is another.
func field(wire []byte, number protowire.Number) (value, rest []byte) {
	if len(wire) == 0 || wire[0] != byte(protowire.EncodeTag(number, protowire.BytesType)) {
		return nil, nil
	}
	value, size := protowire.ConsumeBytes(wire[1:])
	if size < 0 || len(value) == 0 {
		return nil, nil
	}
	return value, wire[1+size:]
}

func isASCII(text []byte) bool {
	for _, c := range text {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
