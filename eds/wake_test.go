package eds

import (
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/publish"
)

// TestAnACKWakesTheSenderOnlyForNews: of a client that has everything, it does not.
func TestAnACKWakesTheSenderOnlyForNews(t *testing.T) {
	for _, key := range []string{"ab", ""} { // in a group, and alone
		s := NewServer(Options{})
		s.Update(publish.Update{Assignments: manyAssignments([]string{"a", "b"}, 1)})
		st := &stream{server: s, permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1)}
		take := func(r *request) {
			t.Helper()
			r.typeURL = resourcev3.EndpointType
			if err := st.process(r); err != nil {
				t.Fatal(err)
			}
		}
		wakes := func(want int) {
			t.Helper()
			equal(t, "wake-ups that wait", len(st.wake), want)
			select {
			case <-st.wake:
			default:
			}
		}
		sends := func() (nonce string) {
			t.Helper()
			u, r := st.next()
			if r == nil {
				t.Fatal("nothing is sent")
			}
			if _, more := st.next(); more != nil {
				t.Fatal("more is sent before the ACK")
			}
			return u.delivery.nonce
		}
		take(&request{names: []string{"a", "b"}, key: key})
		wakes(1)
		take(&request{nonce: sends()})
		wakes(1) // the first sync is over
		if _, r := st.next(); r != nil {
			t.Fatal("more is sent than there is")
		}
		s.setHealth(0, health.Unhealthy)
		wakes(1)
		nonce := sends()
		s.setHealth(1, health.Unhealthy)
		wakes(0) // the client has to answer first
		take(&request{nonce: nonce})
		wakes(1)
		take(&request{nonce: sends()})
		wakes(0)
	}
}
