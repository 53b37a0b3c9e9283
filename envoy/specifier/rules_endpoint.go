package specifier

import (
	"math"
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/envoy"
)

var endpointMessages = map[protoreflect.FullName]messageRule{
	"envoy.config.endpoint.v3.Endpoint":                   rule(ruleEndpoint),
	"envoy.config.endpoint.v3.Endpoint.HealthCheckConfig": rule(ruleHealthCheckConfig),
	"envoy.config.core.v3.Address":                        rule(ruleAddress),
	"envoy.config.core.v3.SocketAddress":                  rule(ruleSocketAddress),
	"envoy.config.core.v3.Pipe":                           rule(rulePipe),
}

func ruleEndpoint(r *review, path string, e *endpointv3.Endpoint) {
	switch a := e.GetAddress().GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		if a.SocketAddress.GetPortValue() == 0 {
			r.problem(join(path, "address.socket_address.port_value"), "is missing")
		}
	case nil:
		if e.Address == nil {
			r.problem(join(path, "address"), "is missing; give a socket address or a pipe")
		}
	}
}

func ruleHealthCheckConfig(r *review, path string, c *endpointv3.Endpoint_HealthCheckConfig) {
	if c.GetAddress().GetPipe() != nil {
		r.problem(join(path, "address"), "must be a socket address")
	}
}

func ruleAddress(r *review, path string, a *corev3.Address) {
	if a.Address == nil {
		r.problem(path, "is empty; give a socket address or a pipe")
	}
}

func ruleSocketAddress(r *review, path string, s *corev3.SocketAddress) {
	if s.GetProtocol() != corev3.SocketAddress_TCP {
		r.problem(join(path, "protocol"), "%v cannot be checked; use TCP", s.GetProtocol())
	}
	if s.GetAddress() == "" {
		r.problem(join(path, "address"), "is missing; give the IP address")
	}
	if a, err := netip.ParseAddr(s.GetAddress()); err == nil {
		r.target(join(path, "address"), a)
	}
}

// target refuses an address that checkers may not probe.
func (r *review) target(path string, a netip.Addr) {
	if wrong := r.options.Targets.refusal(a); wrong != "" {
		r.problem(path, "checkers may not probe %s: %s", a, wrong)
	}
}

func rulePipe(r *review, path string, p *corev3.Pipe) {
	if p.GetPath() == "" {
		r.problem(join(path, "path"), "is missing")
	}
}

// longestIP is the length of the longest IP address without a zone.
const longestIP = 45

// isPlainEndpoint reports whether an endpoint has an IP address and a port, and nothing else. Almost
// all do. No rule changes such a one, and only its address may be refused.
func isPlainEndpoint(e *endpointv3.Endpoint) (netip.Addr, bool) {
	s := e.GetAddress().GetSocketAddress()
	port := s.GetPortValue()
	if port == 0 || port > math.MaxUint16 || proto.Size(e) != envoy.EndpointSize(len(s.GetAddress()), uint64(port)) {
		return netip.Addr{}, false
	}
	var room [longestIP]byte
	a, err := netip.ParseAddr(s.GetAddress())
	return a, err == nil && a.Zone() == "" && string(envoy.AppendIP(room[:0], a)) == s.GetAddress()
}

// canonical reports whether an endpoint is sent unchanged.
func canonical(e *endpointv3.Endpoint) bool {
	if config := e.GetHealthCheckConfig(); config != nil && proto.Size(config) == 0 {
		return false
	}
	s := e.GetAddress().GetSocketAddress()
	if s == nil {
		return true
	}
	a, err := netip.ParseAddr(s.GetAddress())
	return err == nil && envoy.IP(a) == s.GetAddress()
}

// normalize makes an endpoint canonical, because Envoy treats different spellings as
// different hosts.
func normalize(e *endpointv3.Endpoint) {
	if config := e.GetHealthCheckConfig(); config != nil && proto.Size(config) == 0 {
		e.HealthCheckConfig = nil
	}
	if s := e.GetAddress().GetSocketAddress(); s != nil {
		if a, err := netip.ParseAddr(s.GetAddress()); err == nil {
			s.Address = envoy.IP(a)
		}
	}
}
