package publish_test

import (
	"bytes"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/health"
	"hdsd/publish"
)

func endpoint(port uint32, says corev3.HealthStatus) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{
		HealthStatus: says, LoadBalancingWeight: wrapperspb.UInt32(7), Metadata: &corev3.Metadata{},
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Hostname: "h", Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
			}}},
		}},
	}
}

func example() *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: "web", Endpoints: []*endpointv3.LocalityLbEndpoints{
		{Locality: &corev3.Locality{Zone: "a"}, Priority: 1, LbEndpoints: []*endpointv3.LbEndpoint{endpoint(1, 0), endpoint(2, corev3.HealthStatus_DRAINING)}},
		{Locality: &corev3.Locality{Zone: "b"}, LbEndpoints: []*endpointv3.LbEndpoint{endpoint(1, 0)}},
	}}
}

func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// only is the health of one endpoint alone.
func only(zone, address string, is health.Status) publish.HealthOf {
	return func(of publish.Key, says health.Status) (health.Status, bool) {
		return is, of == publish.Key{Locality: health.Locality{Zone: zone}, Address: address}
	}
}

func TestOnlyTheHealthOfTheEndpointChanges(t *testing.T) {
	before := example()
	after := example()
	after.Endpoints[1].LbEndpoints[0].HealthStatus = corev3.HealthStatus_UNHEALTHY
	got, err := publish.OverlayAssignment(encode(t, before), only("b", "10.0.0.1:1", health.Unhealthy))
	if err != nil || !bytes.Equal(got, encode(t, after)) {
		t.Errorf("got %x, %v, want %x", got, err, encode(t, after))
	}

	after = example()
	after.Endpoints[0].LbEndpoints[1].HealthStatus = 0
	got, err = publish.OverlayAssignment(encode(t, before), only("a", "10.0.0.1:2", health.Unknown))
	if err != nil || !bytes.Equal(got, encode(t, after)) {
		t.Errorf("without its status it is %x, %v, want %x", got, err, encode(t, after))
	}
}

func TestWhatNeedNotChangeIsReturnedAsItIs(t *testing.T) {
	// Fields out of order and unknown ones: a decoder would not give these bytes back.
	wire := append(protowire.AppendString(protowire.AppendTag(nil, 77, protowire.BytesType), "x"), encode(t, example())...)
	for name, healthOf := range map[string]publish.HealthOf{
		"nobody": func(publish.Key, health.Status) (health.Status, bool) { return health.Unhealthy, false },
		"same":   func(_ publish.Key, says health.Status) (health.Status, bool) { return says, true },
	} {
		if got, err := publish.OverlayAssignment(wire, healthOf); err != nil || &got[0] != &wire[0] {
			t.Errorf("%s: got %x, %v", name, got, err)
		}
	}
}

func TestTwoStatusesBecomeOne(t *testing.T) {
	status := func(v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), v)
	}
	one := append(append(status(1), encode(t, endpoint(1, 0))...), status(3)...)
	group := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), one)
	wire := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), group)
	got, err := publish.OverlayAssignment(wire, func(_ publish.Key, says health.Status) (health.Status, bool) {
		if says != health.Draining {
			t.Errorf("the control plane says %s, want the last one", says)
		}
		return health.Unhealthy, true
	})
	back := &endpointv3.ClusterLoadAssignment{}
	if err != nil || proto.Unmarshal(got, back) != nil || back.GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus() != corev3.HealthStatus_UNHEALTHY || bytes.Contains(got, status(3)) {
		t.Errorf("got %x, %v", got, err)
	}
}

func TestACluster(t *testing.T) {
	before := &clusterv3.Cluster{
		Name: "web", ConnectTimeout: durationpb.New(1), HealthChecks: []*corev3.HealthCheck{{}, {}},
		LoadAssignment: example(), DnsLookupFamily: clusterv3.Cluster_V6_ONLY,
	}
	of := only("a", "10.0.0.1:1", health.Unhealthy)
	for _, checked := range []bool{true, false} {
		after := proto.CloneOf(before)
		after.LoadAssignment.Endpoints[0].LbEndpoints[0].HealthStatus = corev3.HealthStatus_UNHEALTHY
		if checked {
			after.HealthChecks = nil
		}
		got, err := publish.OverlayCluster(encode(t, before), checked, of)
		if err != nil || !bytes.Equal(got, encode(t, after)) {
			t.Errorf("checked %v: got %x, %v, want %x", checked, got, err, encode(t, after))
		}
	}
}

// FuzzAssignment: whatever the bytes, nothing but the health of endpoints changes, and it
// is what it should be.
func FuzzAssignment(f *testing.F) {
	f.Add(encode(f, example()), uint8(2))
	f.Add(encode(f, &clusterv3.Cluster{Name: "web", HealthChecks: []*corev3.HealthCheck{{}}, LoadAssignment: example()}), uint8(0))
	f.Add([]byte{0x12, 0x04, 0x12, 0x02, 0x10, 0x03}, uint8(1))
	f.Fuzz(func(t *testing.T, wire []byte, to uint8) {
		want := health.Status(to % 6)
		healthOf := func(publish.Key, health.Status) (health.Status, bool) { return want, true }
		before := &endpointv3.ClusterLoadAssignment{}
		valid := proto.Unmarshal(wire, before) == nil
		got, err := publish.OverlayAssignment(wire, healthOf)
		if err == nil && valid {
			after := &endpointv3.ClusterLoadAssignment{}
			if err := proto.Unmarshal(got, after); err != nil {
				t.Fatalf("the result cannot be decoded: %v", err)
			}
			hold(t, before, after, want)
		}
		if got, err := publish.OverlayCluster(wire, true, healthOf); err == nil && proto.Unmarshal(wire, &clusterv3.Cluster{}) == nil {
			after := &clusterv3.Cluster{}
			if err := proto.Unmarshal(got, after); err != nil || len(after.GetHealthChecks()) > 0 {
				t.Fatalf("the cluster has become %v, %v", after, err)
			}
		}
	})
}

// hold holds an assignment against what it was.
func hold(t *testing.T, before, after *endpointv3.ClusterLoadAssignment, want health.Status) {
	t.Helper()
	for g, group := range after.GetEndpoints() {
		for e, endpoint := range group.GetLbEndpoints() {
			if endpoint.GetEndpoint().GetAddress().GetAddress() == nil || endpoint.GetHealthStatus() == corev3.HealthStatus(want) {
				endpoint.HealthStatus = before.GetEndpoints()[g].GetLbEndpoints()[e].GetHealthStatus()
			}
		}
	}
	if !proto.Equal(before, after) {
		t.Fatalf("%v has become %v", before, after)
	}
}
