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

// FuzzMark: Unmark removes a mark, and changes no version without one.
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

// unitsOf reads the resources of a response.
func unitsOf(t testing.TB, delta bool, r *message.Response) (all []message.Unit) {
	t.Helper()
	for _, wire := range r.Resources {
		u, err := message.ParseUnit(delta, wire)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

// rewritten is a resource of a response with another body and version.
func rewritten(t testing.TB, delta bool, wire []byte, body []byte, version string) []byte {
	t.Helper()
	u, err := message.ParseUnit(delta, wire)
	if err == nil {
		wire, err = message.RewriteUnit(delta, wire, &u, body, version)
	}
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

func TestADeltaResponse(t *testing.T) {
	wire := encode(t, deltaResponse(t))
	r, err := message.ParseResponse(true, wire)
	if err != nil || r.Nonce != "n" || r.TypeURL != "t" || !slices.Equal(r.Removed, []string{"gone"}) || len(r.Resources) != 3 {
		t.Fatalf("read %+v, %v", r, err)
	}
	units := unitsOf(t, true, r)
	if message.TypeOf(wire) != "t" || units[0].Name != "web" || units[0].Version != "1" || units[1].Body != nil || units[2].Body == nil {
		t.Fatalf("read %+v", units)
	}
	same := make([][]byte, 3)
	for i, u := range units {
		same[i] = rewritten(t, true, r.Resources[i], u.Body, u.Version)
	}
	if got, err := message.RewriteResponse(true, wire, "", same).Encode(); err != nil || !bytes.Equal(got, wire) {
		t.Errorf("nothing changes, and it becomes %x, %v", got, err)
	}
	changed := [][]byte{
		rewritten(t, true, r.Resources[0], encode(t, &clusterv3.Cluster{Name: "web"}), "2"), nil, rewritten(t, true, r.Resources[2], units[2].Body, "3"),
	}
	want := deltaResponse(t)
	want.Resources[0].Version, want.Resources[0].Resource = "2", pack(t, &clusterv3.Cluster{Name: "web"})
	want.Resources[2].Version = "3"
	want.Resources = slices.Delete(want.GetResources(), 1, 2)
	got, err := message.RewriteResponse(true, wire, "", changed).Encode()
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
	if err != nil || r.Version != "7" || len(r.Resources) != 2 {
		t.Fatalf("read %+v, %v", r, err)
	}
	if units := unitsOf(t, false, r); units[0].Name != "web" || units[1].Name != "w" || !units[1].Wrapped {
		t.Fatalf("read %+v", units)
	}
	changes := [][]byte{nil, rewritten(t, false, r.Resources[1], encode(t, &clusterv3.Cluster{Name: "w"}), "1")}
	got, err := message.RewriteResponse(false, wire, "8", changes).Encode()
	wrapped.Resource = pack(t, &clusterv3.Cluster{Name: "w"})
	response.VersionInfo, response.Resources = "8", []*anypb.Any{pack(t, wrapped)}
	back := &discoveryv3.DiscoveryResponse{}
	if err != nil || proto.Unmarshal(got, back) != nil || !proto.Equal(back, response) {
		t.Errorf("it becomes %v, %v, want %v", back, err, response)
	}
}

func TestBuild(t *testing.T) {
	packed := &anypb.Any{TypeUrl: "t", Value: encode(t, &clusterv3.Cluster{Name: "web"})}
	resource := &discoveryv3.Resource{Name: "web", Version: "1", Resource: packed}
	delta := &discoveryv3.DeltaDiscoveryResponse{}
	want := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: "t", Nonce: "n", RemovedResources: []string{"gone"}, Resources: []*discoveryv3.Resource{resource}}
	wire, err := message.Build(true, "t", "n", "", [][]byte{encode(t, resource)}, []string{"gone"}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(wire, delta); err != nil || !proto.Equal(delta, want) {
		t.Errorf("delta: %v, %v", delta, err)
	}
	state := &discoveryv3.DiscoveryResponse{}
	wantState := &discoveryv3.DiscoveryResponse{TypeUrl: "t", Nonce: "n", VersionInfo: "7", Resources: []*anypb.Any{packed}}
	if wire, err = message.Build(false, "t", "n", "7", [][]byte{encode(t, packed)}, nil).Encode(); err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(wire, state); err != nil || !proto.Equal(state, wantState) {
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
	got, err = message.RewriteRequest(true, encode(t, delta), &message.Edit{Nonce: "x", Claims: r.Claims, Known: func(name, version []byte) bool {
		claims[string(name)] = string(version)
		return string(name) == "a"
	}})
	if !maps.Equal(claims, delta.GetInitialResourceVersions()) {
		t.Errorf("it claims %v", claims)
	}
	delta.InitialResourceVersions["a"], delta.InitialResourceVersions["b"] = "1", message.Mark("", 0)
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
		all := make([][]byte, len(r.Resources))
		units := make([]message.Unit, len(r.Resources))
		for i, resource := range r.Resources {
			if units[i], err = message.ParseUnit(delta, resource); err != nil {
				return
			}
			if all[i], err = message.RewriteUnit(delta, resource, &units[i], units[i].Body, units[i].Version+"2"); err != nil {
				return
			}
		}
		got, err := message.RewriteResponse(delta, wire, r.Version, all).Encode()
		if err != nil {
			return
		}
		again, err := message.ParseResponse(delta, got)
		if err != nil || len(again.Resources) != len(units) || again.Nonce != r.Nonce || !slices.Equal(again.Removed, r.Removed) {
			t.Fatalf("%x becomes %x: %+v, %v", wire, got, again, err)
		}
		for i, resource := range again.Resources {
			u, err := message.ParseUnit(delta, resource)
			if err != nil || u.Name != units[i].Name || !bytes.Equal(u.Body, units[i].Body) {
				t.Fatalf("resource %d of %x has changed: %v", i, wire, err)
			}
		}
	})
}

// TestPartsAreTheResponse: the parts of a kept response are the bytes of the response, and parts with
// resources are told from the others.
func TestPartsAreTheResponse(t *testing.T) {
	response := deltaResponse(t)
	wire := encode(t, response)
	var whole, resources []byte
	if err := message.KeepResponse(wire).Each(func(part []byte, resource bool) {
		if whole = append(whole, part...); resource {
			resources = append(resources, part...)
		}
	}); err != nil || !bytes.Equal(whole, wire) {
		t.Errorf("%x becomes %x, %v", wire, whole, err)
	}
	if want := encode(t, &discoveryv3.DeltaDiscoveryResponse{Resources: response.GetResources()}); !bytes.Equal(resources, want) {
		t.Errorf("its resources are %x, want %x", resources, want)
	}
	if _, err := message.KeepResponse([]byte{2<<3 | 2, 5}).Encode(); err == nil {
		t.Error("what cannot be read passes")
	}
}

// TestMillionsOfEmptyResourcesAreRefused before they take memory: two bytes each on the wire.
func TestMillionsOfEmptyResourcesAreRefused(t *testing.T) {
	for _, number := range []byte{2, 6} {
		wire := bytes.Repeat([]byte{number<<3 | 2, 0}, message.MaxResources)
		if r, err := message.ParseResponse(true, wire); err != nil || len(r.Resources)+len(r.Removed) != message.MaxResources {
			t.Errorf("as many as there may be: %v", err)
		}
		if _, err := message.ParseResponse(true, append(wire, number<<3|2, 0)); err == nil || err.Error() != "it has more than 524288 resources" {
			t.Errorf("one more: %v", err)
		}
	}
}
