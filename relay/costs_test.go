//go:build !race || soak

package relay

import (
	"bytes"
	"fmt"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
	"hdsd/peer/limit"
)

// TestClaimsMakeLittleGarbage: none for each of them, which verdicts would wait for.
func TestClaimsMakeLittleGarbage(t *testing.T) {
	request, s := claimRequest(t, 10_000), benchServer()
	if count := testing.AllocsPerRun(5, func() {
		st := idleStream(s, method{delta: true})
		if _, err := st.sendRequest(request); err != nil {
			t.Fatal(err)
		}
		st.close()
	}); count > 100 {
		t.Errorf("a request with 10,000 claims allocates %.0f times", count)
	}
}

// TestClaimsWithoutRoomTakeNoMemory: a short entry would take several times its size in hdsd, and in
// the request that the control plane gets. That one still says which resources the client has, and
// none of their versions.
func TestClaimsWithoutRoomTakeNoMemory(t *testing.T) {
	const count = 1 << 20
	entry := fields.AppendBytes(nil, 5, []byte("\x0a\x01a")) // initial_resource_versions: its name is "a"
	request := bytes.Repeat(entry, count)
	s := benchServer()
	s.options.Names = limit.NewPool(limit.Limit{Total: 100})
	st := idleStream(s, method{delta: true, typeURL: clusters.typeURL()})
	st.caller = "flood"
	var sent []byte
	var err error
	taken := allocated(func() { sent, err = st.sendRequest(request) })
	if err != nil {
		t.Fatal(err)
	}
	if taken > 3*uint64(len(request)) {
		t.Errorf("a request of %d bytes takes %d", len(request), taken)
	}
	if len(sent) > len(request)+100 || bytes.Count(sent, entry) != count {
		t.Errorf("a request of %d bytes becomes one of %d bytes with %d claims", len(request), len(sent), bytes.Count(sent, entry))
	}
}

// TestDoubtsCostLittle: after a refusal of many clusters with another check, each goes out alone, and
// costs the same, however many others wait.
func TestDoubtsCostLittle(t *testing.T) {
	const names, pushes = 10_000, 20
	s := benchServer()
	st := idleStream(s, method{delta: true})
	answer := func(nonce string, refused bool) {
		r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters.typeURL(), ResponseNonce: nonce}
		if refused {
			r.ErrorDetail = &status.Status{Code: 13}
		}
		wire, err := proto.Marshal(r)
		if err == nil {
			_, err = st.sendRequest(wire)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, path := range []string{"/", "/other"} {
		if _, err := st.respond(arrival{typeURL: clusters.typeURL(), wire: clusterResponseWith(t, clusters, names, path, fmt.Sprint(i+1))}); err != nil {
			t.Fatal(err)
		}
		answer(fmt.Sprint(i+1), path != "/")
	}
	pushed := map[string]bool{}
	bytes := allocated(func() {
		for range pushes {
			r := &discoveryv3.DeltaDiscoveryResponse{}
			if err := proto.Unmarshal(st.nextPush(), r); err != nil {
				t.Fatal(err)
			}
			if len(r.GetResources()) != 1 {
				t.Fatalf("%d are sent together", len(r.GetResources()))
			}
			pushed[r.GetResources()[0].GetName()] = true
			answer(r.GetNonce(), false)
		}
	}) / pushes
	if len(pushed) != pushes {
		t.Errorf("in %d responses, there are %d clusters", pushes, len(pushed))
	}
	if bytes > 50_000 {
		t.Errorf("a response with one of %d clusters in doubt takes %d bytes", names, bytes)
	}
}
