package envoy

import (
	"bytes"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func socketEndpoint(host string, port uint32) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
		}}},
	}}}
}

// FuzzDecode holds Decode against the library.
func FuzzDecode(f *testing.F) {
	named := socketEndpoint("10.0.0.2", 80)
	named.GetEndpoint().GetAddress().GetSocketAddress().PortSpecifier = &corev3.SocketAddress_NamedPort{NamedPort: "http"}
	weighed := socketEndpoint("10.0.0.3", 80)
	weighed.HealthStatus, weighed.LoadBalancingWeight = corev3.HealthStatus_DRAINING, wrapperspb.UInt32(7)
	for _, a := range []*endpointv3.ClusterLoadAssignment{
		{},
		{ClusterName: "web", Endpoints: []*endpointv3.LocalityLbEndpoints{{}, {
			Locality: &corev3.Locality{Zone: "a"}, Priority: 1,
			LbEndpoints: []*endpointv3.LbEndpoint{
				socketEndpoint("10.0.0.1", 80), socketEndpoint("", 0), socketEndpoint("é", 1<<31), socketEndpoint("10.0.0.1", 80), named, weighed, {}, nil,
			},
		}}, Policy: &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(150)}},
	} {
		wire, err := proto.Marshal(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		want := &endpointv3.ClusterLoadAssignment{}
		if proto.Unmarshal(wire, want) != nil {
			return
		}
		if got := DecodeAssignment(wire); !proto.Equal(got, want) {
			t.Errorf("%x: got %v, want %v", wire, got, want)
		}
	})
}

// FuzzEncode holds Encode against the library, with messages as the wire has them, and with the
// plain endpoints of localities that have no others packed.
func FuzzEncode(f *testing.F) {
	unknown := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: "a"}, Priority: 1, LoadBalancingWeight: wrapperspb.UInt32(2)}
	unknown.ProtoReflect().SetUnknown([]byte{0xa8, 0x3f, 1})
	plain := &endpointv3.LocalityLbEndpoints{LbEndpoints: []*endpointv3.LbEndpoint{socketEndpoint("10.0.0.1", 80), socketEndpoint("::1", 65535)}}
	for _, a := range []*endpointv3.ClusterLoadAssignment{
		{}, {ClusterName: "web"}, {Endpoints: []*endpointv3.LocalityLbEndpoints{plain}},
		{ClusterName: "web", Policy: &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(150)}, Endpoints: []*endpointv3.LocalityLbEndpoints{
			{}, unknown, plain, {Locality: unknown.Locality, LbEndpoints: plain.LbEndpoints, Priority: 1, LoadBalancingWeight: wrapperspb.UInt32(2)},
			{LbEndpoints: []*endpointv3.LbEndpoint{socketEndpoint("10.0.0.1", 80), {}}},
		}},
	} {
		wire, err := proto.Marshal(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
		f.Add(append(wire, 8, 1)) // cluster_name as a number, which is unknown
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		a := &endpointv3.ClusterLoadAssignment{}
		if proto.Unmarshal(wire, a) != nil {
			return
		}
		want, _ := proto.MarshalOptions{Deterministic: true}.Marshal(a)
		if got, err := EncodeAssignment(a); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: got %x (%v), want %x", a, got, err, want)
		}
		packPlain(a)
		if got, err := EncodeAssignment(a); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v packed: got %x (%v), want %x", a, got, err, want)
		}
	})
}

// packPlain packs the endpoints of localities that have plain ones alone.
func packPlain(a *endpointv3.ClusterLoadAssignment) {
	for _, l := range a.GetEndpoints() {
		var packed []byte
		for _, e := range l.GetLbEndpoints() {
			wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
			if host, port, plain := plainEndpoint(wire); err == nil && plain {
				packed = AppendLbEndpoint(packed, string(host), port)
			} else {
				return
			}
		}
		if len(l.ProtoReflect().GetUnknown()) == 0 && len(packed) > 0 {
			l.LbEndpoints = nil
			PackEndpoints(l, packed)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	group := &endpointv3.LocalityLbEndpoints{}
	for range 1000 {
		group.LbEndpoints = append(group.LbEndpoints, socketEndpoint("10.20.30.40", 8080))
	}
	wire, err := proto.Marshal(&endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{group}})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("here", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			DecodeAssignment(wire)
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = proto.Unmarshal(wire, &endpointv3.ClusterLoadAssignment{})
		}
	})
}
