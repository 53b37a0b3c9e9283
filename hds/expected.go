package hds

import (
	"math"
	"net/netip"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/envoy"
	"hdsd/envoy/fields"
)

// The usual length of an IP address with zone and port, and of its encoded Endpoint.
const longestAddress, longestEndpoint = 64, 64 + 16

// appendEndpoint encodes the Endpoint of an address as Envoy reports it, and returns the address
// as package envoy writes it. It is called for every endpoint of every specifier, so it makes no
// message first.
func appendEndpoint(b []byte, address string) (encoded []byte, canonical string) {
	addrPort, err := netip.ParseAddrPort(address)
	if err != nil {
		var room [longestAddress + 8]byte
		pipe := fields.AppendText(room[:0], fields.PipePath, address)
		b = fields.AppendHead(b, fields.EndpointAddress, protowire.SizeTag(fields.AddressPipe)+protowire.SizeBytes(len(pipe)))
		return fields.AppendBytes(b, fields.AddressPipe, pipe), address
	}
	var room [longestAddress]byte
	canonical = address // usually
	if text := envoy.AppendAddrPort(room[:0], addrPort); string(text) != address {
		canonical = string(text)
	}
	return envoy.AppendEndpoint(b, envoy.AppendIP(room[:0], addrPort.Addr()), uint64(addrPort.Port())), canonical
}

// isEndpoint reports whether bytes are the Endpoint of an IP address and port as Envoy reports
// it. False may also mean another kind of address or another encoding. It is called for every
// entry of a changed report.
func isEndpoint(encoded []byte, address string) bool {
	const heads = 6 // of Endpoint, Address and SocketAddress's address
	n := len(encoded)
	if n < heads || n > longestEndpoint || encoded[0] != tagOf(fields.EndpointAddress, protowire.BytesType) || int(encoded[1]) != n-2 ||
		encoded[2] != tagOf(fields.AddressSocket, protowire.BytesType) || int(encoded[3]) != n-4 || encoded[4] != tagOf(fields.SocketAddress, protowire.BytesType) {
		return false
	}
	end := heads + int(encoded[5])
	if end >= n || encoded[end] != tagOf(fields.SocketPort, protowire.VarintType) {
		return false
	}
	port, size := protowire.ConsumeVarint(encoded[end+1:])
	if size != n-end-1 || port > math.MaxUint16 {
		return false
	}
	var room [longestAddress]byte
	host, ok := strings.CutSuffix(address, string(strconv.AppendUint(append(room[:0], ':'), port, 10)))
	if ok && len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	return ok && string(encoded[heads:end]) == host
}

// tagOf returns the one byte that begins a field with a small number.
func tagOf(field protowire.Number, kind protowire.Type) byte {
	return byte(protowire.EncodeTag(field, kind))
}
