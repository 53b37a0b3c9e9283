package hds

import (
	"net/netip"

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
