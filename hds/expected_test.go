package hds_test

import (
	"bytes"
	"net/netip"
	"runtime"
	"testing"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/hds"
)

// endpointOf is the Endpoint that Envoy reports for an address.
func endpointOf(address string) *endpointv3.Endpoint {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: address}}}}
	}
	return &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: envoy.IP(at.Addr()), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port())},
	}}}}
}

func FuzzExpectedEndpoint(f *testing.F) {
	for _, address := range []string{
		"10.0.0.1:80", "10.0.0.1:0", "255.255.255.255:65535", "[2001:db8::1]:443", "[2001:DB8:0::1]:443", "[::ffff:1.2.3.4]:80", "[::1.2.3.4]:80", "[::102:304]:80",
		"[fe80::1%a-zone-with-a-name-that-is-longer-than-most-are-and-then-some-more]:80", "/run/some.sock", "@abstract", "10.0.0.1:99999",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		want, err := proto.Marshal(endpointOf(address))
		if err != nil || address == "" {
			t.Skip("not UTF-8, or nothing at all: in no specifier")
		}
		got, canonical := hds.AppendEndpoint([]byte("before"), address)
		if !bytes.Equal(got, append([]byte("before"), want...)) {
			t.Errorf("%q is encoded %x, want %x", address, got, want)
		}
		if _, err := netip.ParseAddrPort(address); err == nil && canonical != envoy.Address(endpointOf(address).GetAddress()) || err != nil && canonical != address {
			t.Errorf("%q in the form %q", address, canonical)
		}
		if _, err := netip.ParseAddrPort(address); err == nil && len(want) < 80 && !hds.IsEndpoint(want, canonical) {
			t.Errorf("%q is not seen at once", address)
		}
	})
}

// FuzzIsEndpoint holds what is seen at once to what decoding says.
func FuzzIsEndpoint(f *testing.F) {
	for _, address := range []string{"10.0.0.1:80", "10.0.0.1:8", "10.0.0.11:80", "[2001:db8::1]:443", "[::1.2.3.4]:80", "/run/some.sock", "10.0.0.1:99999", "[fe80::1%eth0]:1"} {
		encoded, err := proto.Marshal(endpointOf(address))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded, address)
		f.Add(encoded, "10.0.0.1:80")
		f.Add(append(encoded, encoded...), address)
		f.Add(encoded[:len(encoded)-1], address)
	}
	f.Fuzz(func(t *testing.T, encoded []byte, address string) {
		if canonical := envoy.Address(endpointOf(address).GetAddress()); canonical != address || !utf8.ValidString(address) || !hds.IsEndpoint(encoded, address) {
			return
		}
		var e endpointv3.Endpoint
		if err := proto.Unmarshal(encoded, &e); err != nil {
			t.Fatal(err)
		}
		if decoded := envoy.Address(e.GetAddress()); decoded != address {
			t.Errorf("%x is seen as %s at once, and is %s", encoded, address, decoded)
		}
	})
}

// TestPlansAreSmall: what is kept of each entry of a specifier is what the specifier has.
func TestPlansAreSmall(t *testing.T) {
	const most = 8 // bytes for each entry
	all := manyEndpoints(12_000)
	spec := assignment(all...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	new(hds.Reader).Assign(spec)
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(len(all)); each > most {
		t.Errorf("%d bytes for each entry", each)
	}
}

// BenchmarkPlan makes ready for the reports on a specifier of 3,000 endpoints.
func BenchmarkPlan(b *testing.B) {
	endpoints, _, _, _ := benchReports(b)
	spec := assignment(endpoints...)
	b.ReportAllocs()
	for b.Loop() {
		r := hds.Reader{}
		r.Assign(spec)
	}
}
