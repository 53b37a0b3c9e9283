package hds

import (
	"net/netip"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/internal/envoyaddr"
)

// Field numbers of the messages in an Endpoint.
const (
	endpointAddress            = 1
	addressSocket, addressPipe = 1, 2
	socketAddress, socketPort  = 2, 3
	pipePath                   = 1
	longestAddress             = 64 // of an IP address with zone and port, as a rule
	longestEndpoint            = longestAddress + 16
)

// appendEndpoint encodes the Endpoint of an address as Envoy reports it, and
// gives the address as package envoyaddr writes it. It is called for every
// endpoint of every specifier, so it makes no message first.
func appendEndpoint(to []byte, address string) (encoded []byte, canonical string) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		size := sizeOfText(pipePath, address)
		to = appendHeads(to, addressPipe, size)
		return appendText(to, pipePath, address), address
	}
	var room [longestAddress]byte
	canonical = address // as a rule
	if text := envoyaddr.AppendAddrPort(room[:0], at); string(text) != address {
		canonical = string(text)
	}
	ip := envoyaddr.AppendIP(room[:0], at.Addr())
	port := uint64(at.Port())
	size := sizeOfText(socketAddress, ip) + protowire.SizeTag(socketPort) + protowire.SizeVarint(port)
	to = appendHeads(to, addressSocket, size)
	to = appendText(to, socketAddress, ip)
	to = protowire.AppendTag(to, socketPort, protowire.VarintType)
	return protowire.AppendVarint(to, port), canonical
}

// isEndpoint reports whether bytes are the Endpoint of an IP address and port as Envoy
// reports it. False says nothing of other addresses and other encodings. It is called for
// every entry of a changed report.
func isEndpoint(encoded []byte, address string) bool {
	const heads = 6 // of Endpoint, Address and SocketAddress's address
	n := len(encoded)
	if n < heads || n > longestEndpoint || encoded[0] != tagOf(endpointAddress, protowire.BytesType) || int(encoded[1]) != n-2 ||
		encoded[2] != tagOf(addressSocket, protowire.BytesType) || int(encoded[3]) != n-4 || encoded[4] != tagOf(socketAddress, protowire.BytesType) {
		return false
	}
	end := heads + int(encoded[5])
	if end >= n || encoded[end] != tagOf(socketPort, protowire.VarintType) {
		return false
	}
	port, size := protowire.ConsumeVarint(encoded[end+1:])
	if size != n-end-1 || port > 1<<16-1 {
		return false
	}
	var room [longestAddress]byte
	host, ok := strings.CutSuffix(address, string(strconv.AppendUint(append(room[:0], ':'), port, 10)))
	if ok && len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	return ok && string(encoded[heads:end]) == host
}

// tagOf gives the one byte that begins a field with a small number.
func tagOf(field protowire.Number, kind protowire.Type) byte {
	return byte(protowire.EncodeTag(field, kind))
}

// appendHeads begins an Endpoint with an Address of one kind, of so many bytes.
func appendHeads(to []byte, kind protowire.Number, size int) []byte {
	to = protowire.AppendTag(to, endpointAddress, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(protowire.SizeTag(kind)+protowire.SizeBytes(size)))
	to = protowire.AppendTag(to, kind, protowire.BytesType)
	return protowire.AppendVarint(to, uint64(size))
}

func appendText[T string | []byte](to []byte, field protowire.Number, text T) []byte {
	to = protowire.AppendTag(to, field, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(len(text)))
	return append(to, text...)
}

func sizeOfText[T string | []byte](field protowire.Number, text T) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(len(text))
}
