package envoy

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// Address formats an address as ip:port, [ip6]:port or a pipe's path. It formats as
// much as it can of an address that can be neither checked nor reported. It is empty
// for no address.
func Address(a *corev3.Address) string {
	switch a := a.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		return socket(a.SocketAddress)
	case *corev3.Address_Pipe:
		return a.Pipe.GetPath()
	case *corev3.Address_EnvoyInternalAddress:
		return "internal:" + a.EnvoyInternalAddress.GetServerListenerName()
	}
	return ""
}

// longest is the length of the longest IP address with its port and without a zone.
const longest = 64

func socket(s *corev3.SocketAddress) string {
	ip, err := netip.ParseAddr(s.GetAddress())
	port, name := s.GetPortValue(), s.GetNamedPort()
	switch {
	case err == nil && name == "" && port <= math.MaxUint16:
		var room [longest]byte
		return string(AppendAddrPort(room[:0], netip.AddrPortFrom(ip, uint16(port))))
	case name == "":
		name = strconv.FormatUint(uint64(port), 10)
	}
	if err == nil {
		return net.JoinHostPort(IP(ip), name)
	}
	return net.JoinHostPort(s.GetAddress(), name)
}

// AddressOf formats the address of an endpoint at a place in an assignment. Without an
// address, it returns that place.
func AddressOf(e *endpointv3.LbEndpoint, locality, index int) string {
	if address := Address(e.GetEndpoint().GetAddress()); address != "" {
		return address
	}
	return fmt.Sprintf("endpoints[%d].lb_endpoints[%d]", locality, index)
}

// AppendAddrPort appends an IP address with a port.
func AppendAddrPort(b []byte, a netip.AddrPort) []byte {
	if a.Addr().Is4() {
		b = a.Addr().AppendTo(b)
	} else {
		b = append(AppendIP(append(b, '['), a.Addr()), ']')
	}
	return strconv.AppendUint(append(b, ':'), uint64(a.Port()), 10)
}

// IP formats an IP address.
func IP(a netip.Addr) string {
	var room [longest]byte
	return string(AppendIP(room[:0], a))
}

// AppendIP appends an IP address as Envoy's reports write it. That is as in Go, except
// for IPv4 addresses after 96 zero bits ("::192.0.2.1").
func AppendIP(wire []byte, a netip.Addr) []byte {
	b := a.As16()
	if a.Is4() || [12]byte(b[:12]) != [12]byte{} || b[12] == 0 && b[13] == 0 {
		return a.AppendTo(wire)
	}
	wire = netip.AddrFrom4([4]byte(b[12:])).AppendTo(append(wire, "::"...))
	if a.Zone() != "" {
		wire = append(append(wire, '%'), a.Zone()...)
	}
	return wire
}
