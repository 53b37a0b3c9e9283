package endpointpb

import (
	"slices"

	"hdsd/internal/fields"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// AppendEndpoint appends an endpoint that is an address and a port to the encoded endpoints of a
// locality. The address is ASCII and not empty.
func AppendEndpoint(to []byte, host string, port uint32) []byte {
	socket := protowire.SizeTag(socketAddress) + protowire.SizeBytes(len(host)) + protowire.SizeTag(socketPort) + protowire.SizeVarint(uint64(port))
	address := protowire.SizeTag(addressSocket) + protowire.SizeBytes(socket)
	endpoint := protowire.SizeTag(endpointAddress) + protowire.SizeBytes(address)
	to = fields.AppendHead(to, groupEndpoints, protowire.SizeTag(lbEndpoint)+protowire.SizeBytes(endpoint))
	to = fields.AppendHead(to, lbEndpoint, endpoint)
	to = fields.AppendHead(to, endpointAddress, address)
	to = fields.AppendHead(to, addressSocket, socket)
	to = protowire.AppendString(protowire.AppendTag(to, socketAddress, protowire.BytesType), host)
	return protowire.AppendVarint(protowire.AppendTag(to, socketPort, protowire.VarintType), uint64(port))
}

// Pack gives a locality without endpoints some that are encoded, without a message for each. Only
// Encode and Packed see them.
func Pack(l *endpointv3.LocalityLbEndpoints, endpoints []byte) {
	l.ProtoReflect().SetUnknown(endpoints)
}

// Packed returns the endpoints that Pack gave a locality.
func Packed(l *endpointv3.LocalityLbEndpoints) []byte {
	unknown := l.ProtoReflect().GetUnknown()
	if len(unknown) == 0 || unknown[0] != byte(protowire.EncodeTag(groupEndpoints, protowire.BytesType)) {
		return nil // truly unknown: the library knows that field
	}
	return unknown
}

// Encode encodes an assignment as the library does, and the packed endpoints as if there were a
// message for each.
func Encode(a *endpointv3.ClusterLoadAssignment) ([]byte, error) {
	groups := a.Endpoints
	if !slices.ContainsFunc(groups, func(l *endpointv3.LocalityLbEndpoints) bool { return Packed(l) != nil }) {
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
		size += protowire.SizeTag(assignmentGroups) + protowire.SizeBytes(len(encoded[i]))
	}
	before := leading(rest, assignmentName)
	wire := append(make([]byte, 0, size), rest[:before]...)
	for _, group := range encoded {
		wire = fields.AppendBytes(wire, assignmentGroups, group)
	}
	return append(wire, rest[before:]...), nil
}

var deterministic = proto.MarshalOptions{Deterministic: true}

func encodeGroup(l *endpointv3.LocalityLbEndpoints) ([]byte, error) {
	packed := Packed(l)
	wire, err := deterministic.Marshal(l)
	if err != nil || packed == nil {
		return wire, err
	}
	rest := wire[:len(wire)-len(packed)] // unknown fields come last
	before := leading(rest, groupLocality)
	return slices.Concat(rest[:before], packed, rest[before:]), nil
}

// leading returns the size of a length-delimited field, if a message begins with it.
func leading(wire []byte, number protowire.Number) int {
	if f, err := fields.Next(wire); err == nil && f.Is(number) {
		return len(f.Raw)
	}
	return 0
}
