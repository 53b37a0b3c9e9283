package relay

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
	"hdsd/internal/wire"
	"hdsd/peer/limit"
	"hdsd/publish"
	"hdsd/relay/message"
)

// respond returns a response of the control plane as the client gets it, in one piece.
func (st *stream) respond(m arrival) ([]byte, error) {
	e, err := st.response(context.Background(), m)
	if err != nil {
		return nil, err
	}
	st.release(e.place)
	return bytes.Join(e.parts, nil), nil
}

// sendRequest passes a request of the client, and returns it as the control plane gets it.
func (st *stream) sendRequest(m []byte) ([]byte, error) {
	head, err := message.HeadOf(st.method.delta, m)
	if err != nil {
		return nil, err
	}
	return st.request(m, &head)
}

// nextPush returns the next response of hdsd's own, in one piece; nil: there is none.
func (st *stream) nextPush() []byte {
	e, err := st.push(&pushRoom{st: st})
	if err != nil {
		panic(err)
	}
	if e == nil {
		return nil
	}
	st.release(e.place)
	return bytes.Join(e.parts, nil)
}

// encodedResponse returns a response of the control plane with a number of resources.
func encodedResponse(t testing.TB, typeURL string, delta bool, nonce string, names int) []byte {
	t.Helper()
	k, _ := kindOf(typeURL)
	d := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(clusterResponse(t, k, names), d); err != nil {
		t.Fatal(err)
	}
	d.TypeUrl, d.Nonce = typeURL, nonce
	var m proto.Message = d
	if !delta {
		state := &discoveryv3.DiscoveryResponse{VersionInfo: "1", TypeUrl: typeURL, Nonce: nonce}
		for _, r := range d.GetResources() {
			state.Resources = append(state.Resources, r.GetResource())
		}
		m = state
	}
	wire, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// nonceOf returns the nonce of a response.
func nonceOf(t testing.TB, delta bool, wire []byte) string {
	t.Helper()
	r, err := message.ParseResponse(delta, wire)
	if err != nil {
		t.Fatal(err)
	}
	return r.Nonce
}

// setFirstDown takes down the first endpoint of a cluster of encodedResponse.
func setFirstDown(t testing.TB, s *Server, cluster int) {
	t.Helper()
	a := assignmentOf(fmt.Sprintf("10.0.%d.%d", cluster>>8, cluster&255), fmt.Sprintf("10.1.%d.%d", cluster>>8, cluster&255))
	a.ClusterName = fmt.Sprintf("cluster-%04d", cluster)
	wire, err := proto.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	s.book.Update(publish.Update{Assignments: []publish.Assignment{{Name: a.GetClusterName(), IDs: [][][]health.EndpointID{{{0}, {1}}}, Wire: wire}}})
	s.book.SetHealth([]publish.Health{{ID: 0, Status: health.Unhealthy}})
}

// slowClient is a client that reads no response until it is released.
type slowClient struct {
	grpc.ServerStream
	got, released chan struct{} // got has a value for each response
}

// Context implements grpc.ServerStream.
func (c *slowClient) Context() context.Context { return context.Background() }

// SendMsg implements grpc.ServerStream.
func (c *slowClient) SendMsg(m any) error {
	c.got <- struct{}{}
	<-c.released
	if l, ok := m.(*large); ok {
		parts, err := l.MarshalWire()
		parts.Free()
		return err
	}
	return nil
}

// fakePlane is a stream to a control plane that sends the responses of a channel.
type fakePlane struct {
	grpc.ClientStream
	life      context.Context
	responses chan []byte
}

// Header implements grpc.ClientStream.
func (p *fakePlane) Header() (metadata.MD, error) { return nil, nil }

// RecvMsg implements grpc.ClientStream.
func (p *fakePlane) RecvMsg(m any) error {
	select {
	case *m.(*wire.Bytes) = <-p.responses:
		return nil
	case <-p.life.Done():
		return p.life.Err()
	}
}

// playedStream is a stream between a slowClient and a fakePlane.
type playedStream struct {
	*stream
	*slowClient
	plane  chan []byte // responses of the control plane
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

func newSlowClient() *slowClient {
	return &slowClient{got: make(chan struct{}, 10), released: make(chan struct{})}
}

func newPlayedStream(t *testing.T, s *Server, caller string, delta bool) *playedStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &playedStream{slowClient: newSlowClient(), plane: make(chan []byte), cancel: cancel}
	p.stream = &stream{
		server: s, caller: caller, ctx: ctx, method: method{delta: delta}, nodeID: "n", client: p.slowClient, upstream: &fakePlane{life: ctx, responses: p.plane},
		inbox: make(chan arrival), wake: make(chan struct{}, 1), failure: make(chan error, 10),
	}
	p.wait.Go(func() { _ = p.responses(ctx) })
	p.wait.Go(func() { _ = p.send(ctx) })
	return p
}

// stop ends the stream, as run does.
func (p *playedStream) stop() {
	p.cancel()
	close(p.released)
	p.wait.Wait()
	p.close()
	p.releaseAll()
}

// TestAnswersWaitForRoom: responses wait for room in turns by caller, also one that is larger than
// the room. A stream that keeps room for too long while others wait ends.
func TestAnswersWaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := benchServer()
		s.options.WriteTimeout = 1 << 60
		s.answers.room = limit.NewRoom(400 << 10) // less than half of a response
		first, second, third := newPlayedStream(t, s, "a", true), newPlayedStream(t, s, "a", true), newPlayedStream(t, s, "b", true)
		for i, p := range []*playedStream{first, second, third} {
			p.plane <- encodedResponse(t, resourcev3.ListenerType, true, fmt.Sprint(i), 4000+i) // different ones
			synctest.Wait()
		}
		if len(first.got) != 1 || len(second.got)+len(third.got) != 0 || s.answers.room.Waiting().Count != 2 {
			t.Fatalf("%d, %d and %d have responses, and %+v waits", len(first.got), len(second.got), len(third.got), s.answers.room.Waiting())
		}
		if time.Sleep(longestHold - time.Second); len(first.failure) != 0 {
			t.Error("the first stream ends too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := <-first.failure; status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("the first stream ends with %v", err)
		}
		first.stop()
		synctest.Wait()
		if len(second.got)+len(third.got) != 1 {
			t.Errorf("%d and %d have responses", len(second.got), len(third.got))
		}
		close(second.released)
		synctest.Wait()
		if len(third.got) != 1 || s.answers.room.Waiting().Count != 0 {
			t.Errorf("%d has a response, and %+v waits", len(third.got), s.answers.room.Waiting())
		}
		if time.Sleep(2 * longestHold); len(third.failure) != 0 {
			t.Error("the third stream ends although nobody waits")
		}
		second.released = make(chan struct{})
		second.stop()
		third.stop()
		if taken := s.answers.room.Taken(); taken != 0 {
			t.Errorf("%d bytes are taken in the end", taken)
		}
	})
}

// TestAPushThatWaitsForRoomHoldsUpNothing: while hdsd's own response waits for room, the responses of
// its stream that have room go on.
func TestAPushThatWaitsForRoomHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := benchServer()
		s.answers.room = limit.NewRoom(400 << 10)
		p := newPlayedStream(t, s, "a", false)
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
		turn, _ := s.answers.room.Ask("b", 1<<20, nil)
		p.mu.Lock()
		p.ledgers[clusters].setDirty("cluster-0000", true)
		p.mu.Unlock()
		p.wakeUp()
		synctest.Wait()
		if waiting := s.answers.room.Waiting(); waiting.Count != 1 || len(p.got) != 0 {
			t.Fatalf("%+v waits, and %d are sent", waiting, len(p.got))
		}
		p.plane <- encodedResponse(t, resourcev3.ListenerType, false, "2", 1)
		<-p.got // this response does not wait
		turn.Release()
		<-p.got
		synctest.Wait()
		if taken := s.answers.room.Taken(); taken != 0 {
			t.Errorf("%d bytes are taken in the end", taken)
		}
		p.released = make(chan struct{})
		p.stop()
	})
}

// countingStream is a stream to a control plane that counts how often hdsd asks for a response.
type countingStream struct {
	grpc.ClientStream
	calls atomic.Int32
}

// RecvMsg implements grpc.ClientStream.
func (c *countingStream) RecvMsg(m any) error {
	c.calls.Add(1)
	return c.ClientStream.RecvMsg(m)
}

// TestAnswersWaitInTheControlPlane: hdsd asks for a large response once there is room for it.
func TestAnswersWaitInTheControlPlane(t *testing.T) {
	t.Parallel()
	response := encodedResponse(t, clusters.typeURL(), true, "1", 4000)
	server := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec()), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		message := wire.Bytes(response)
		if err := s.SendMsg(&message); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })

	s := benchServer()
	s.answers.room = limit.NewRoom(400 << 10)
	s.upstream.maxBytes = 64 << 20
	s.upstream.services = []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{
		GoogleGrpc: &corev3.GrpcService_GoogleGrpc{TargetUri: listener.Addr().String(), StatPrefix: "x"},
	}}}
	ctx, cancel := context.WithCancel(t.Context())
	upstream, leave, err := s.upstream.open(ctx, &method{fullName: "/" + aggregated + "/DeltaAggregatedResources"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	turn, _ := s.answers.room.Ask("other", 1<<20, nil)
	counted := &countingStream{ClientStream: upstream}
	st := &stream{server: s, caller: "a", ctx: ctx, method: method{delta: true}, nodeID: "n", upstream: counted, inbox: make(chan arrival)}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = st.responses(ctx) }()
	for s.answers.room.Waiting().Count == 0 {
		runtime.Gosched()
	}
	if counted.calls.Load() != 0 {
		t.Error("hdsd asks for the response before there is room")
	}
	turn.Release()
	if m := <-st.inbox; !bytes.Equal(m.wire, response) || m.place == nil {
		t.Errorf("%d bytes arrive, want %d; room: %v", len(m.wire), len(response), m.place)
	}
	cancel()
	<-ended
	leave(false)
}
