//go:build !race || soak

package relay

import (
	"bytes"
	"fmt"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
)

// TestLargeAnswersAreHeldOnce: clients that get the same large response share one copy, for each
// type, whatever the nonces, with and without changed health. No copy is left when all are written.
func TestLargeAnswersAreHeldOnce(t *testing.T) {
	t.Parallel()
	for _, typeURL := range []string{clusters.typeURL(), assignments.typeURL(), resourcev3.ListenerType} {
		for _, delta := range []bool{true, false} {
			s := benchServer()
			setFirstDown(t, s, 0)
			var responses []*encoded
			var streams []*stream
			for i := range 3 {
				st := idleStream(s, method{delta: delta})
				nonce := fmt.Sprintf("nonce %d", i)
				e, err := st.response(t.Context(), arrival{typeURL: typeURL, wire: encodedResponse(t, typeURL, delta, nonce, 4000)})
				if err != nil {
					t.Fatal(err)
				}
				if got := nonceOf(t, delta, bytes.Join(e.parts, nil)); got != nonce {
					t.Errorf("%s, delta %t: the nonce is %q", typeURL, delta, got)
				}
				if responses = append(responses, e); &e.parts[1][0] != &responses[0].parts[1][0] || len(e.parts[0])+len(e.parts[2]) > 200 {
					t.Errorf("%s, delta %t: client %d has a copy of its own", typeURL, delta, i)
				}
				streams = append(streams, st)
			}
			for i, e := range responses {
				if len(s.answers.runs) != 1 {
					t.Errorf("%s, delta %t: %d runs are kept", typeURL, delta, len(s.answers.runs))
				}
				streams[i].release(e.place)
				streams[i].release(e.place) // a second call changes nothing
			}
			if left := len(s.answers.runs); left != 0 {
				t.Errorf("%s, delta %t: %d runs are kept in the end", typeURL, delta, left)
			}
		}
	}
}

// TestLargePushesAreHeldOnce: hdsd's own response by state of the world has all clusters. Clients
// share one copy of it.
func TestLargePushesAreHeldOnce(t *testing.T) {
	t.Parallel()
	s := benchServer()
	var responses []*encoded
	for i := range 2 {
		st := idleStream(s, method{})
		st.upstream = openStream{}
		if _, err := st.respond(arrival{typeURL: clusters.typeURL(), wire: encodedResponse(t, clusters.typeURL(), false, "1", 4000)}); err != nil {
			t.Fatal(err)
		}
		ack, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: clusters.typeURL(), ResponseNonce: "1", VersionInfo: "1"})
		if err == nil {
			_, err = st.sendRequest(ack)
		}
		if err != nil {
			t.Fatal(err)
		}
		st.ledgers[clusters].setDirty("cluster-0000", true)
		e, err := st.push(&pushRoom{st: st})
		if err != nil || e == nil {
			t.Fatalf("%v, %v", e, err)
		}
		if responses = append(responses, e); &e.parts[1][0] != &responses[0].parts[1][0] {
			t.Errorf("client %d has a copy of its own", i)
		}
	}
}
