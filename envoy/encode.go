package envoy

import (
	"slices"

	"hdsd/envoy/fields"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// AppendEndpoint appends an encoded Endpoint that is an address and a port.
func AppendEndpoint[T string | []byte](b []byte, host T, port uint64) []byte {
	_, address, socket := plainSizes(len(host), port)
	b = fields.AppendHead(b, fields.EndpointAddress, address)
	b = fields.AppendHead(b, fields.AddressSocket, socket)
	b = fields.AppendBytes(b, fields.SocketAddress, host)
	return fields.AppendNumber(b, fields.SocketPort, port)
}

// EndpointSize returns the size of AppendEndpoint's result for an address of so many bytes.
func EndpointSize(host int, port uint64) int {
	size, _, _ := plainSizes(host, port)
	return size
}

func plainSizes(host int, port uint64) (endpoint, address, socket int) {
	const tag = 1 // the numbers of the fields are small
	socket = tag + protowire.SizeBytes(host) + tag + protowire.SizeVarint(port)
	address = tag + protowire.SizeBytes(socket)
	return tag + protowire.SizeBytes(address), address, socket
}

// AppendLbEndpoint appends an endpoint that is an address and a port to the encoded endpoints of a
// locality. The address is ASCII and not empty.
func AppendLbEndpoint(b []byte, host string, port uint32) []byte {
	size := EndpointSize(len(host), uint64(port))
	b = fields.AppendHead(b, fields.LocalityEndpoints, protowire.SizeTag(fields.LbEndpointEndpoint)+protowire.SizeBytes(size))
	return AppendEndpoint(fields.AppendHead(b, fields.LbEndpointEndpoint, size), host, uint64(port))
}

// PackEndpoints sets the encoded endpoints of a locality without any, without a message for
// each. Only EncodeAssignment and PackedEndpoints see them.
func PackEndpoints(l *endpointv3.LocalityLbEndpoints, endpoints []byte) {
	l.ProtoReflect().SetUnknown(endpoints)
}

// PackedEndpoints returns the endpoints that PackEndpoints set.
func PackedEndpoints(l *endpointv3.LocalityLbEndpoints) []byte {
	unknown := l.ProtoReflect().GetUnknown()
	if len(unknown) == 0 || unknown[0] != byte(protowire.EncodeTag(fields.LocalityEndpoints, protowire.BytesType)) {
		return nil // truly unknown: the library knows that field
	}
	return unknown
}

// EncodeAssignment encodes an assignment as the library does, and the packed endpoints as if there were a
// message for each.
func EncodeAssignment(a *endpointv3.ClusterLoadAssignment) ([]byte, error) {
	groups := a.Endpoints
	if !slices.ContainsFunc(groups, func(l *endpointv3.LocalityLbEndpoints) bool { return PackedEndpoints(l) != nil }) {
		return deterministic.Marshal(a)
	}
	a.Endpoints = nil
	rest, err := deterministic.Marshal(a)
	if a.Endpoints = groups; err != nil {
		return nil, err
	}
	size := len(rest)
	encoded := make([][]byte, len(groups))
	for i, l := range groups {
		if encoded[i], err = encodeGroup(l); err != nil {
			return nil, err
		}
		size += protowire.SizeTag(fields.AssignmentLocalities) + protowire.SizeBytes(len(encoded[i]))
	}
	before := leading(rest, fields.Name)
	wire := append(make([]byte, 0, size), rest[:before]...)
	for _, group := range encoded {
		wire = fields.AppendBytes(wire, fields.AssignmentLocalities, group)
	}
	return append(wire, rest[before:]...), nil
}

var deterministic = proto.MarshalOptions{Deterministic: true}

func encodeGroup(l *endpointv3.LocalityLbEndpoints) ([]byte, error) {
	packed := PackedEndpoints(l)
	wire, err := deterministic.Marshal(l)
	if err != nil || packed == nil {
		return wire, err
	}
	rest := wire[:len(wire)-len(packed)] // unknown fields come last
	before := leading(rest, fields.LocalityName)
	return slices.Concat(rest[:before], packed, rest[before:]), nil
}

// leading returns the size of a length-delimited field, if a message begins with it.
func leading(wire []byte, number protowire.Number) int {
	if f, err := fields.Next(wire); err == nil && f.Is(number) {
		return len(f.Raw)
	}
	return 0
}
