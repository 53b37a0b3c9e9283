package message_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/relay/message"
)

func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

func pack(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func TestMarks(t *testing.T) {
	for _, version := range []string{"", "1", "v~hdsd.1.x", "a b", message.Mark("1", 2)} {
		marked := message.Mark(version, 12345)
		if got, change, ok := message.Unmark(marked); got != version || !ok || change != 12345 {
			t.Errorf("%q becomes %q, and that %q, %v", version, marked, got, ok)
		}
	}
	for _, version := range []string{"", "1", "v~hdsd.1.x", "~hdsd.", "~hdsd.1.", message.Mark("1", 2) + "x"} {
		if got, _, ok := message.Unmark(version); got != version || ok {
			t.Errorf("%q has no mark, and becomes %q, %v", version, got, ok)
		}
	}
	if message.Mark("1", 2) == message.Mark("1", 3) {
		t.Error("two changes have one version")
	}
}

// FuzzMark: what has a mark, and no other, loses it.
func FuzzMark(f *testing.F) {
	f.Add("1", uint64(7))
	f.Add(message.Mark("x", 1), uint64(0))
	f.Fuzz(func(t *testing.T, version string, change uint64) {
		if got, back, ok := message.Unmark(message.Mark(version, change)); got != version || !ok || back != change {
			t.Fatalf("%q becomes %q", version, got)
		}
		if got, _, ok := message.Unmark(version); !ok && got != version {
			t.Fatalf("%q has no mark, and becomes %q", version, got)
		}
	})
}

func deltaResponse(t testing.TB) *discoveryv3.DeltaDiscoveryResponse {
	return &discoveryv3.DeltaDiscoveryResponse{
		SystemVersionInfo: "9", TypeUrl: "t", Nonce: "n", RemovedResources: []string{"gone"},
		Resources: []*discoveryv3.Resource{
			{Name: "web", Version: "1", Resource: pack(t, &clusterv3.Cluster{Name: "web", AltStatName: "x"}), Ttl: durationpb.New(5), Aliases: []string{"w"}},
			{Name: "beat", Version: "1", Ttl: durationpb.New(5)},
			{Name: "bare", Resource: pack(t, &clusterv3.Cluster{Name: "bare"})},
		},
	}
}

func TestADeltaResponse(t *testing.T) {
	wire := encode(t, deltaResponse(t))
	r, err := message.ParseResponse(true, wire)
	if err != nil || r.Nonce != "n" || r.TypeURL != "t" || !slices.Equal(r.Removed, []string{"gone"}) || len(r.Units) != 3 {
		t.Fatalf("read %+v, %v", r, err)
	}
	if message.TypeOf(wire) != "t" || r.Units[0].Name != "web" || r.Units[0].Version != "1" || r.Units[1].Body != nil || r.Units[2].Body == nil {
		t.Fatalf("read %+v", r.Units)
	}
	same := make([]message.Change, 3)
	for i, u := range r.Units {
		same[i] = message.Change{Body: u.Body, Version: u.Version}
	}
	if got, err := message.RewriteResponse(true, wire, "", r.Units, same); err != nil || &got[0] != &wire[0] {
		t.Errorf("nothing changes, and it becomes %x, %v", got, err)
	}
	changed := slices.Clone(same)
	changed[0] = message.Change{Body: encode(t, &clusterv3.Cluster{Name: "web"}), Version: "2"}
	changed[1].Drop = true
	changed[2].Version = "3"
	want := deltaResponse(t)
	want.Resources[0].Version, want.Resources[0].Resource = "2", pack(t, &clusterv3.Cluster{Name: "web"})
	want.Resources[2].Version = "3"
	want.Resources = slices.Delete(want.GetResources(), 1, 2)
	got, err := message.RewriteResponse(true, wire, "", r.Units, changed)
	back := &discoveryv3.DeltaDiscoveryResponse{}
	if err != nil || proto.Unmarshal(got, back) != nil || !proto.Equal(back, want) {
		t.Errorf("it becomes %v, %v, want %v", back, err, want)
	}
}

func TestAStateResponse(t *testing.T) {
	wrapped := &discoveryv3.Resource{Name: "w", Version: "1", Ttl: durationpb.New(5), Resource: pack(t, &clusterv3.Cluster{Name: "w", AltStatName: "x"})}
	response := &discoveryv3.DiscoveryResponse{
		VersionInfo: "7", TypeUrl: "t", Nonce: "n", Canary: true,
		Resources: []*anypb.Any{pack(t, &clusterv3.Cluster{Name: "web"}), pack(t, wrapped)},
	}
	wire := encode(t, response)
	r, err := message.ParseResponse(false, wire)
	if err != nil || r.Version != "7" || len(r.Units) != 2 || r.Units[0].Name != "web" || r.Units[1].Name != "w" || !r.Units[1].Wrapped {
		t.Fatalf("read %+v, %v", r, err)
	}
	changes := []message.Change{{Drop: true}, {Body: encode(t, &clusterv3.Cluster{Name: "w"}), Version: "1"}}
	got, err := message.RewriteResponse(false, wire, "8", r.Units, changes)
	wrapped.Resource = pack(t, &clusterv3.Cluster{Name: "w"})
	response.VersionInfo, response.Resources = "8", []*anypb.Any{pack(t, wrapped)}
	back := &discoveryv3.DiscoveryResponse{}
	if err != nil || proto.Unmarshal(got, back) != nil || !proto.Equal(back, response) {
		t.Errorf("it becomes %v, %v, want %v", back, err, response)
	}
}

func TestBuild(t *testing.T) {
	body := encode(t, &clusterv3.Cluster{Name: "web"})
	units := []message.Unit{{Name: "web", Version: "1", Body: body}}
	packed := &anypb.Any{TypeUrl: "t", Value: body}
	delta := &discoveryv3.DeltaDiscoveryResponse{}
	want := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: "t", Nonce: "n", Resources: []*discoveryv3.Resource{{Name: "web", Version: "1", Resource: packed}}}
	if err := proto.Unmarshal(message.Build(true, "t", "n", "", units), delta); err != nil || !proto.Equal(delta, want) {
		t.Errorf("delta: %v, %v", delta, err)
	}
	state := &discoveryv3.DiscoveryResponse{}
	wantState := &discoveryv3.DiscoveryResponse{TypeUrl: "t", Nonce: "n", VersionInfo: "7", Resources: []*anypb.Any{packed}}
	if err := proto.Unmarshal(message.Build(false, "t", "n", "7", units), state); err != nil || !proto.Equal(state, wantState) {
		t.Errorf("state of the world: %v, %v", state, err)
	}
}

func TestRequests(t *testing.T) {
	refusal := &rpcstatus.Status{Message: "no"}
	state := &discoveryv3.DiscoveryRequest{
		VersionInfo: message.Mark("7", 1), Node: &corev3.Node{Id: "n"}, ResourceNames: []string{"a", "b"}, TypeUrl: "t", ResponseNonce: "x", ErrorDetail: refusal,
	}
	r, err := message.ParseRequest(false, encode(t, state))
	if err != nil || !r.Refused || r.Nonce != "x" || !slices.Equal(r.Names, state.GetResourceNames()) || r.TypeURL != "t" {
		t.Fatalf("read %+v, %v", r, err)
	}
	got, err := message.RewriteRequest(false, encode(t, state), &message.Edit{Nonce: "y", NoAnswer: true, Version: message.Original})
	state.VersionInfo, state.ResponseNonce, state.ErrorDetail = "7", "y", nil
	if err != nil || !bytes.Equal(got, encode(t, state)) {
		t.Errorf("it becomes %x, %v", got, err)
	}

	delta := &discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: "n"}, TypeUrl: "t", ResourceNamesSubscribe: []string{"a"}, ResourceNamesUnsubscribe: []string{"b"},
		InitialResourceVersions: map[string]string{"a": message.Mark("1", 5), "b": ""}, ResponseNonce: "x", ErrorDetail: refusal,
	}
	r, err = message.ParseRequest(true, encode(t, delta))
	if err != nil || !r.Refused || !r.Changes || !slices.Equal(r.Names, []string{"a"}) || !slices.Equal(r.Unsubscribe, []string{"b"}) || r.Claims != 2 {
		t.Fatalf("read %+v, %v", r, err)
	}
	claims := map[string]string{}
	r.EachClaim(func(name, version string) { claims[name] = version })
	if !maps.Equal(claims, delta.GetInitialResourceVersions()) {
		t.Errorf("it claims %v", claims)
	}
	got, err = message.RewriteRequest(true, encode(t, delta), &message.Edit{Nonce: "x", Initial: func(_, v string) string { return message.Original(v) }})
	delta.InitialResourceVersions["a"] = "1"
	if err != nil || !bytes.Equal(got, encode(t, delta)) {
		t.Errorf("it becomes %x, %v", got, err)
	}
	h, err := message.HeadOf(true, encode(t, delta))
	if h.TypeURL != "t" || len(h.Node) == 0 || !h.Answers || h.Text() != "no" || err != nil {
		t.Errorf("its head is %+v, %v", h, err)
	}
}

// FuzzResponse: a response of which nothing changes stays as it is, whatever its bytes.
func FuzzResponse(f *testing.F) {
	f.Add(encode(f, deltaResponse(f)), true)
	f.Add(encode(f, &discoveryv3.DiscoveryResponse{VersionInfo: "7", Resources: []*anypb.Any{pack(f, &clusterv3.Cluster{Name: "web"})}}), false)
	f.Fuzz(func(t *testing.T, wire []byte, delta bool) {
		r, err := message.ParseResponse(delta, wire)
		if err != nil {
			return
		}
		changes := make([]message.Change, len(r.Units))
		for i, u := range r.Units {
			changes[i] = message.Change{Body: u.Body, Version: u.Version}
		}
		got, err := message.RewriteResponse(delta, wire, r.Version, r.Units, changes)
		if err != nil {
			return
		}
		again, err := message.ParseResponse(delta, got)
		if err != nil || len(again.Units) != len(r.Units) || again.Nonce != r.Nonce || !slices.Equal(again.Removed, r.Removed) {
			t.Fatalf("%x becomes %x: %+v, %v", wire, got, again, err)
		}
		for i := range again.Units {
			if again.Units[i].Name != r.Units[i].Name || !bytes.Equal(again.Units[i].Body, r.Units[i].Body) {
				t.Fatalf("resource %d of %x has changed", i, wire)
			}
		}
	})
}
