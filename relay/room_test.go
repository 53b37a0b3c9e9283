package relay

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/peer/limit"
)

// TestAPushOfAChangeWaitsForRoom, too: what is to be pushed shows only once the stream looks at
// what has changed.
func TestAPushOfAChangeWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := benchServer()
		s.answers.room = limit.NewRoom(400 << 10)
		p := newPlayedStream(t, s, "a", false)
		s.add(p.stream)
		close(p.released)
		p.plane <- encodedResponse(t, clusters.typeURL(), false, "1", 4000)
		<-p.got
		synctest.Wait()
		ack, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: clusters.typeURL(), ResponseNonce: "1", VersionInfo: "1"})
		if err == nil {
			_, err = p.sendRequest(ack)
		}
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		turn, _ := s.answers.room.Ask("b", 1<<20, nil)
		s.SetHealth(false) // each cluster has its checks back
		synctest.Wait()
		if waiting := s.answers.room.Waiting(); waiting.Count != 1 || len(p.got) != 0 {
			t.Errorf("%+v waits, and %d are sent", waiting, len(p.got))
		}
		turn.Release()
		synctest.Wait()
		if len(p.got) != 1 {
			t.Errorf("%d are sent once there is room", len(p.got))
		}
		p.released = make(chan struct{})
		p.stop()
		if taken := s.answers.room.Taken(); taken != 0 {
			t.Errorf("%d bytes are taken in the end", taken)
		}
	})
}

// TestRoomThatCameTooLate for a push, which is small by then, is none of the next one's.
func TestRoomThatCameTooLate(t *testing.T) {
	t.Parallel()
	s := benchServer()
	s.answers.room = limit.NewRoom(400 << 10)
	st := &stream{server: s, nodeID: "n", wake: make(chan struct{}, 1)}
	room := &pushRoom{st: st}
	first, _ := s.answers.room.Ask("other", 1<<20, nil)
	s.answers.room.Ask("first", 20<<10<<1, func(*limit.Turn) { room.drop() }) // between
	if room.ready(100 << 10) {
		t.Fatal("there is room")
	}
	first.Release()
	second, _ := s.answers.room.Ask("again", 1<<20, nil)
	defer second.Release()
	if room.ready(100 << 10) {
		t.Error("there is room that others have")
	}
}

// TestATimerThatIsLateEndsNothing: what it watched is written.
func TestATimerThatIsLateEndsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := benchServer()
		s.answers.room = limit.NewRoom(400 << 10)
		st := &stream{server: s, caller: "a", failure: make(chan error, 1)}
		p, err := st.begin(t.Context(), 200<<10)
		if err != nil {
			t.Fatal(err)
		}
		st.release(p)
		p.timer.Reset(0) // it had begun before, and had to wait for done
		synctest.Wait()
		turn, _ := s.answers.room.Ask("b", 1<<20, nil)
		waiter, _ := s.answers.room.Ask("b", 1<<20, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(st.failure) != 0 {
			t.Errorf("the stream ends: %v", <-st.failure)
		}
		waiter.Release()
		turn.Release()
	})
}

// TestWhatIsNotSharedKeepsItsRoom, such as the names that a response removes.
func TestWhatIsNotSharedKeepsItsRoom(t *testing.T) {
	t.Parallel()
	response := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: resourcev3.ListenerType, Nonce: "1"}
	for i := range 10_000 {
		response.RemovedResources = append(response.RemovedResources, fmt.Sprintf("a listener with a long name that nobody needs, number %d", i))
	}
	wire, err := proto.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	s := benchServer()
	s.answers.room = limit.NewRoom(64 << 20)
	var taken []int64
	var streams []*stream
	var responses []*encoded
	for range 2 {
		st := &stream{server: s, method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1)}
		p, err := st.begin(t.Context(), len(wire))
		if err != nil {
			t.Fatal(err)
		}
		e, err := st.response(t.Context(), arrival{resourcev3.ListenerType, wire, p})
		if err != nil {
			t.Fatal(err)
		}
		streams, responses, taken = append(streams, st), append(responses, e), append(taken, s.answers.room.Taken())
	}
	if taken[1] < 2*taken[0] {
		t.Errorf("one has %d bytes, two have %d", taken[0], taken[1])
	}
	for i, e := range responses {
		streams[i].release(e.place)
	}
	if taken := s.answers.room.Taken(); taken != 0 || len(s.answers.runs) != 0 {
		t.Errorf("%d bytes are taken in the end, for %d", taken, len(s.answers.runs))
	}
}

// TestALargeResponseThatIsNone ends the stream as one of another size or type does: by the control
// plane.
func TestALargeResponseThatIsNone(t *testing.T) {
	t.Parallel()
	junk := append(encodedResponse(t, resourcev3.ListenerType, true, "1", 4000), 0xff)
	for _, typeURL := range []string{resourcev3.ListenerType, clusters.typeURL()} {
		st := &stream{server: benchServer(), method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1)}
		if _, err := st.response(t.Context(), arrival{typeURL: typeURL, wire: junk}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "control plane") {
			t.Errorf("%s: %v", typeURL, err)
		}
	}
}
