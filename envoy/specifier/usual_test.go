package specifier

import (
	"testing"

	"hdsd/envoy"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// drawEndpoint draws an endpoint that has few fields, or unusual ones.
func drawEndpoint(t *rapid.T) *endpointv3.Endpoint {
	rarely := func(name string) bool { return rapid.IntRange(0, 9).Draw(t, name) == 0 }
	s := &corev3.SocketAddress{
		Address:       rapid.SampledFrom([]string{"10.0.0.1", "::1", "::192.0.2.1", "::ffff:1.2.3.4", "0::1", "fe80::1%eth0", ""}).Draw(t, "ip"),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: rapid.SampledFrom([]uint32{0, 1, 127, 128, 8080, 65535, 65536}).Draw(t, "port")},
	}
	e := &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: s}}}
	if rarely("hostname") {
		e.Hostname = "a"
	}
	if rarely("check") {
		e.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{}
	}
	if rarely("more") {
		e.AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{{Address: e.Address}}
	}
	if rarely("udp") {
		s.Protocol = corev3.SocketAddress_UDP
	}
	if rarely("ipv4_compat") {
		s.Ipv4Compat = true
	}
	for name, m := range map[string]proto.Message{"endpoint": e, "address": e.Address, "socket": s} {
		if rarely("unknown in " + name) {
			m.ProtoReflect().SetUnknown([]byte{0xa8, 0x3f, 1})
		}
	}
	return e
}

// A review finds nothing wrong with a usual endpoint, and changes nothing in it.
func TestUsual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEndpoint(t)
		r := review{looking: true}
		r.message("endpoint", e.ProtoReflect())
		sound := len(r.problems) == 0 && !r.dirty && canonical(e) && validate(e) == ""
		if _, usual := isPlainEndpoint(e); usual != sound {
			t.Errorf("%v: usual is %t, but the review says %v (dirty: %t)", e, usual, r.problems, r.dirty)
		}
		if again := endpointOf(&envoy.EndpointMaker{}, envoy.Address(e.GetAddress())); sound && !proto.Equal(again, e) {
			t.Errorf("%v is sent as %v", e, again)
		}
	})
}
