package envoy

import (
	"math"

	"hdsd/envoy/fields"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// DecodeAssignment decodes a valid ClusterLoadAssignment. Of an invalid one, it returns the
// decodable part.
func DecodeAssignment(wire []byte) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{}
	var rest []byte
	for f := range fields.All(wire) {
		if f.Is(fields.AssignmentLocalities) {
			a.Endpoints = append(a.Endpoints, decodeGroup(f.Value))
		} else {
			rest = append(rest, f.Raw...)
		}
	}
	_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, a)
	return a
}

func decodeGroup(wire []byte) *endpointv3.LocalityLbEndpoints {
	g := &endpointv3.LocalityLbEndpoints{LbEndpoints: make([]*endpointv3.LbEndpoint, 0, len(wire)/plainBytes)}
	var rest []byte
	var maker EndpointMaker
	for f := range fields.All(wire) {
		if !f.Is(fields.LocalityEndpoints) {
			rest = append(rest, f.Raw...)
			continue
		}
		var e *endpointv3.LbEndpoint
		if host, port, plain := plainEndpoint(f.Value); plain {
			e = maker.Endpoint(string(host), port)
		} else {
			e = &endpointv3.LbEndpoint{}
			_ = proto.Unmarshal(f.Value, e)
		}
		g.LbEndpoints = append(g.LbEndpoints, e)
	}
	_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, g)
	return g
}

// plainBytes is the usual size of an encoded plain endpoint.
const plainBytes = 22

// plainEndpoint reads an LbEndpoint that is an address in ASCII and a port, in the order in which
// AppendLbEndpoint writes them. It does not read any other.
func plainEndpoint(wire []byte) (host []byte, port uint32, ok bool) {
	endpoint, left := field(wire, fields.LbEndpointEndpoint)
	address, endpointRest := field(endpoint, fields.EndpointAddress)
	socket, socketRest := field(address, fields.AddressSocket)
	host, rest := field(socket, fields.SocketAddress)
	if len(left)+len(endpointRest)+len(socketRest) > 0 || len(rest) < 2 || rest[0] != byte(protowire.EncodeTag(fields.SocketPort, protowire.VarintType)) || !isASCII(host) {
		return nil, 0, false
	}
	n, size := protowire.ConsumeVarint(rest[1:])
	if size != len(rest)-1 || n > math.MaxUint32 {
		return nil, 0, false
	}
	return host, uint32(n), true
}

// field reads the first field of a message. value is nil if it has another number.
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
