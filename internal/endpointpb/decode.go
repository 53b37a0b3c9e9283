package endpointpb

import (
	"math"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fields of ClusterLoadAssignment, LocalityLbEndpoints, LbEndpoint, Endpoint, Address and
// SocketAddress.
const (
	assignmentGroups = 2
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
	eachField(wire, func(number protowire.Number, raw, value []byte) {
		if number == assignmentGroups && value != nil {
			a.Endpoints = append(a.Endpoints, decodeGroup(value))
		} else {
			rest = append(rest, raw...)
		}
	})
	_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, a)
	return a
}

func decodeGroup(wire []byte) *endpointv3.LocalityLbEndpoints {
	g := &endpointv3.LocalityLbEndpoints{LbEndpoints: make([]*endpointv3.LbEndpoint, 0, len(wire)/usualBytes)}
	var rest []byte
	var maker Maker
	eachField(wire, func(number protowire.Number, raw, value []byte) {
		if number != groupEndpoints || value == nil {
			rest = append(rest, raw...)
			return
		}
		host, port, plain := plainEndpoint(value)
		if plain {
			g.LbEndpoints = append(g.LbEndpoints, maker.Endpoint(string(host), port))
			return
		}
		e := &endpointv3.LbEndpoint{}
		_ = proto.Unmarshal(value, e)
		g.LbEndpoints = append(g.LbEndpoints, e)
	})
	_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, g)
	return g
}

// usualBytes is about how many an encoded endpoint has.
const usualBytes = 22

// eachField visits the fields of a valid message. value is that of a length-delimited one.
func eachField(wire []byte, visit func(number protowire.Number, raw, value []byte)) {
	for len(wire) > 0 {
		number, kind, head := protowire.ConsumeTag(wire)
		if head < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(number, kind, wire[head:])
		if size < 0 {
			return
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(wire[head:])
			if value == nil {
				value = []byte{}
			}
		}
		visit(number, wire[:head+size], value)
		wire = wire[head+size:]
	}
}

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
