package check

import (
	"fmt"
	"math"
	"net"
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/envoy"
)

// longestPipe is the maximum length of a Unix socket's path.
const longestPipe = 107

// target is the destination of a connection.
type target struct{ network, address string }

// place is a parsed address: an IP and port, or a pipe.
type place struct {
	ip   netip.Addr
	port uint32
	pipe *corev3.Pipe
}

func parseAddress(a *corev3.Address) (place, error) {
	switch a := a.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		return parseSocket(a.SocketAddress)
	case *corev3.Address_Pipe:
		path := a.Pipe.GetPath()
		if path == "" || len(path) > longestPipe {
			return place{}, fmt.Errorf("pipe path %q must have 1 to %d bytes", path, longestPipe)
		}
		return place{pipe: a.Pipe}, nil
	case nil:
		return place{}, fmt.Errorf("no address")
	default:
		return place{}, fmt.Errorf("address of type %T is not supported", a)
	}
}

func parseSocket(s *corev3.SocketAddress) (place, error) {
	ip, err := netip.ParseAddr(s.GetAddress())
	if err != nil {
		return place{}, fmt.Errorf("address %q is not an IP address", s.GetAddress())
	}
	_, named := s.GetPortSpecifier().(*corev3.SocketAddress_NamedPort)
	switch {
	case named:
		return place{}, fmt.Errorf("address %s: named_port is not supported", ip)
	case s.GetResolverName() != "":
		return place{}, fmt.Errorf("address %s: resolver_name is not supported", ip)
	case s.GetNetworkNamespaceFilepath() != "":
		return place{}, fmt.Errorf("address %s: network_namespace_filepath is not supported", ip)
	case s.GetProtocol() != corev3.SocketAddress_TCP:
		return place{}, fmt.Errorf("address %s: protocol %s is not supported", ip, s.GetProtocol())
	case s.GetPortValue() > math.MaxUint16:
		return place{}, fmt.Errorf("address %s: port %d is over 65535", ip, s.GetPortValue())
	}
	return place{ip: ip, port: s.GetPortValue()}, nil
}

func (p place) target() target {
	if p.pipe != nil {
		return target{"unix", p.pipe.GetPath()}
	}
	return target{"tcp", netip.AddrPortFrom(p.ip, uint16(p.port)).String()}
}

// reported returns the address in the form of Envoy's reports.
func (p place) reported() *endpointv3.Endpoint {
	address := &corev3.Address{}
	if p.pipe != nil {
		address.Address = &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: p.pipe.GetPath(), Mode: p.pipe.GetMode()}}
	} else {
		address.Address = &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address:       envoy.IP(p.ip),
			PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: p.port},
		}}
	}
	return &endpointv3.Endpoint{Address: address}
}

// checkedAt returns the place to probe an endpoint at.
func checkedAt(p place, c *endpointv3.Endpoint_HealthCheckConfig) (place, error) {
	if c.GetPortValue() > math.MaxUint16 {
		return place{}, fmt.Errorf("health_check_config: port %d is over 65535", c.GetPortValue())
	}
	if c.GetAddress() != nil {
		q, err := parseAddress(c.GetAddress())
		if err != nil {
			return place{}, fmt.Errorf("health_check_config: %w", err)
		}
		p = q
	}
	if c.GetPortValue() != 0 && p.pipe == nil {
		p.port = c.GetPortValue()
	}
	return p, nil
}

// sourceAddress returns the address to connect from; nil for any.
func sourceAddress(b *corev3.BindConfig) (net.Addr, error) {
	if b == nil || b.GetSourceAddress() == nil {
		return nil, nil
	}
	p, err := parseSocket(b.GetSourceAddress())
	if err != nil {
		return nil, fmt.Errorf("upstream_bind_config: %w", err)
	}
	if b.GetFreebind().GetValue() || len(b.GetSocketOptions()) > 0 || len(b.GetExtraSourceAddresses()) > 0 ||
		len(b.GetAdditionalSourceAddresses()) > 0 || b.GetLocalAddressSelector() != nil { //nolint:staticcheck // Envoy still applies it
		return nil, fmt.Errorf("upstream_bind_config: only source_address is supported")
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.ip, uint16(p.port))), nil
}
