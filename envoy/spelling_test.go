package envoy

import (
	"net/netip"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/health"
)

func at(ip string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func named(ip, port string) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: ip, PortSpecifier: &corev3.SocketAddress_NamedPort{NamedPort: port},
	}}}
}

func TestAddress(t *testing.T) {
	for _, test := range []struct {
		address *corev3.Address
		want    string
	}{
		{at("10.0.0.1", 80), "10.0.0.1:80"},
		{at("0.0.0.0", 0), "0.0.0.0:0"},
		{at("255.255.255.255", 65535), "255.255.255.255:65535"},
		{at("10.0.0.1", 65536), "10.0.0.1:65536"},
		{at("2001:db8::1", 80), "[2001:db8::1]:80"},
		{at("2001:DB8:0:0::0:1", 80), "[2001:db8::1]:80"},
		{at("2001:db8::192.0.2.1", 80), "[2001:db8::c000:201]:80"},
		{at("::1", 80), "[::1]:80"},
		{at("::", 80), "[::]:80"},
		{at("::5:6", 80), "[::0.5.0.6]:80"},
		{at("::192.0.2.1", 80), "[::192.0.2.1]:80"},
		{at("::c000:201", 80), "[::192.0.2.1]:80"},
		{at("::c000:201", 65536), "[::192.0.2.1]:65536"},
		{at("::ffff:192.0.2.1", 80), "[::ffff:192.0.2.1]:80"},
		{at("::FFFF:c000:0201", 80), "[::ffff:192.0.2.1]:80"},
		{at("fe80::1%eth0", 80), "[fe80::1%eth0]:80"},
		{at("::c000:201%eth0", 80), "[::192.0.2.1%eth0]:80"},
		{named("::c000:201", "http"), "[::192.0.2.1]:http"},
		{at("db.internal", 80), "db.internal:80"},
		{at("a:b", 80), "[a:b]:80"},
		{at("", 80), ":80"},
		{&corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "@web"}}}, "@web"},
		{&corev3.Address{Address: &corev3.Address_EnvoyInternalAddress{EnvoyInternalAddress: &corev3.EnvoyInternalAddress{
			AddressNameSpecifier: &corev3.EnvoyInternalAddress_ServerListenerName{ServerListenerName: "web"},
		}}}, "internal:web"},
		{&corev3.Address{}, ""},
		{nil, ""},
	} {
		if got := Address(test.address); got != test.want {
			t.Errorf("%v is written %q, want %q", test.address, got, test.want)
		}
	}
}

func TestAddressOfAnEndpointWithoutOne(t *testing.T) {
	if got := AddressOf(&endpointv3.LbEndpoint{}, 2, 3); got != "endpoints[2].lb_endpoints[3]" {
		t.Errorf("it is %s", got)
	}
}

func TestLocality(t *testing.T) {
	want := health.Locality{Region: "eu", Zone: "a", SubZone: "rack"}
	if got := Locality(LocalityMessage(want)); got != want {
		t.Errorf("%+v becomes %+v", want, got)
	}
	if got := Locality((*corev3.Locality)(nil)); got != (health.Locality{}) {
		t.Errorf("none becomes %+v", got)
	}
}

// FuzzAddress: what is written is read as what was written, is written the same
// again, and as Go writes it but for "::192.0.2.1".
func FuzzAddress(f *testing.F) {
	for _, ip := range []string{"10.0.0.1", "::1", "::c000:201", "::ffff:1.2.3.4", "fe80::1%x", "::1.2.3.4%x", "2001:db8::1"} {
		f.Add(ip, uint16(80))
	}
	f.Fuzz(func(t *testing.T, ip string, port uint16) {
		parsed, err := netip.ParseAddr(ip)
		if err != nil {
			return
		}
		text := Address(at(ip, uint32(port)))
		back, err := netip.ParseAddrPort(text)
		if want := netip.AddrPortFrom(parsed, port); err != nil || back != want {
			t.Fatalf("%s:%d is written %s, which is read as %v (%v)", ip, port, text, back, err)
		}
		if again := Address(at(back.Addr().String(), uint32(port))); again != text {
			t.Errorf("%s is written %s, then %s", ip, text, again)
		}
		b := parsed.As16()
		if compatible := parsed.Is6() && [12]byte(b[:12]) == [12]byte{}; !compatible && text != back.String() {
			t.Errorf("%s is written %s, other than by Go", ip, text)
		}
	})
}
