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

	"hdsd/eds"
	"hdsd/health"
	"hdsd/internal/share"
	"hdsd/internal/wire"
	"hdsd/relay/message"
)

// respond gives what the client gets of a response of the control plane, in one piece.
func (st *stream) respond(m incoming) ([]byte, error) {
	e, err := st.response(context.Background(), m)
	if err != nil {
		return nil, err
	}
	st.done(e.place)
	return bytes.Join(e.parts, nil), nil
}

// tells has the client send a request, and gives what the control plane gets of it.
func (st *stream) tells(m []byte) ([]byte, error) {
	head, err := message.HeadOf(st.method.delta, m)
	if err != nil {
		return nil, err
	}
	return st.request(m, &head)
}

// pushed is the next response of hdsd's own, in one piece; nil: there is none.
func (st *stream) pushed() []byte {
	e, err := st.push(&pushRoom{st: st})
	if err != nil {
		panic(err)
	}
	if e == nil {
		return nil
	}
	st.done(e.place)
	return bytes.Join(e.parts, nil)
}

// saying is a response of the control plane with so many resources.
func saying(t testing.TB, typeURL string, delta bool, nonce string, names int) []byte {
	t.Helper()
	k, _ := kindOf(typeURL)
	as := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(said(t, k, names), as); err != nil {
		t.Fatal(err)
	}
	as.TypeUrl, as.Nonce = typeURL, nonce
	var m proto.Message = as
	if !delta {
		state := &discoveryv3.DiscoveryResponse{VersionInfo: "1", TypeUrl: typeURL, Nonce: nonce}
		for _, one := range as.GetResources() {
			state.Resources = append(state.Resources, one.GetResource())
		}
		m = state
	}
	out, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// nonceOf gives the nonce of a response.
func nonceOf(t testing.TB, delta bool, wire []byte) string {
	t.Helper()
	r, err := message.ParseResponse(delta, wire)
	if err != nil {
		t.Fatal(err)
	}
	return r.Nonce
}

// downAt has hdsd know that the first endpoint of a cluster of said is down.
func downAt(t testing.TB, s *Server, cluster int) {
	t.Helper()
	a := assignmentOf(fmt.Sprintf("10.0.%d.%d", cluster>>8, cluster&255), fmt.Sprintf("10.1.%d.%d", cluster>>8, cluster&255))
	a.ClusterName = fmt.Sprintf("cluster-%04d", cluster)
	wire, err := proto.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	s.book.Update(eds.Update{Assignments: []eds.Assignment{{Name: a.GetClusterName(), IDs: [][][]health.EndpointID{{{0}, {1}}}, Wire: wire}}})
	s.book.SetHealth([]eds.Health{{ID: 0, Status: health.Unhealthy}})
}

// TestLargeAnswersAreHeldOnce however many clients get them: those of the control plane, of each
// type, whatever their nonces, as they came or with health. Nothing is kept when all are written.
func TestLargeAnswersAreHeldOnce(t *testing.T) {
	t.Parallel()
	for _, typeURL := range []string{clusters.typeURL(), assignments.typeURL(), resourcev3.ListenerType} {
		for _, delta := range []bool{true, false} {
			s := benchServer()
			downAt(t, s, 0)
			var all []*encoded
			var streams []*stream
			for i := range 3 {
				st := &stream{server: s, method: method{delta: delta}, nodeID: "n", wake: make(chan struct{}, 1)}
				nonce := fmt.Sprintf("nonce %d", i)
				e, err := st.response(t.Context(), incoming{typeURL: typeURL, wire: saying(t, typeURL, delta, nonce, 4000)})
				if err != nil {
					t.Fatal(err)
				}
				if got := nonceOf(t, delta, bytes.Join(e.parts, nil)); got != nonce {
					t.Errorf("%s, delta %t: the nonce is %q", typeURL, delta, got)
				}
				if all = append(all, e); &e.parts[1][0] != &all[0].parts[1][0] || len(e.parts[0])+len(e.parts[2]) > 200 {
					t.Errorf("%s, delta %t: client %d has memory of its own", typeURL, delta, i)
				}
				streams = append(streams, st)
			}
			for i, e := range all {
				if len(s.answers.runs) != 1 {
					t.Errorf("%s, delta %t: %d are kept", typeURL, delta, len(s.answers.runs))
				}
				streams[i].done(e.place)
				streams[i].done(e.place) // twice is as once
			}
			if left := len(s.answers.runs); left != 0 {
				t.Errorf("%s, delta %t: %d are kept in the end", typeURL, delta, left)
			}
		}
	}
}

// TestLargePushesAreHeldOnce, too: a client of the state of the world gets all clusters.
func TestLargePushesAreHeldOnce(t *testing.T) {
	t.Parallel()
	s := benchServer()
	var all []*encoded
	for i := range 2 {
		st := &stream{server: s, method: method{}, nodeID: "n", wake: make(chan struct{}, 1), up: openStream{}}
		if _, err := st.respond(incoming{typeURL: clusters.typeURL(), wire: saying(t, clusters.typeURL(), false, "1", 4000)}); err != nil {
			t.Fatal(err)
		}
		ack, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: clusters.typeURL(), ResponseNonce: "1", VersionInfo: "1"})
		if err == nil {
			_, err = st.tells(ack)
		}
		if err != nil {
			t.Fatal(err)
		}
		st.ledgers[clusters].setDirty("cluster-0000", true)
		e, err := st.push(&pushRoom{st: st})
		if err != nil || e == nil {
			t.Fatalf("%v, %v", e, err)
		}
		if all = append(all, e); &e.parts[1][0] != &all[0].parts[1][0] {
			t.Errorf("client %d has memory of its own", i)
		}
	}
}

// deaf is a client that reads nothing of large responses, until it is released.
type deaf struct {
	grpc.ServerStream
	got, released chan struct{}
}

// Context implements grpc.ServerStream.
func (d *deaf) Context() context.Context { return context.Background() }

// SendMsg implements grpc.ServerStream.
func (d *deaf) SendMsg(m any) error {
	d.got <- struct{}{}
	if _, ok := m.(*large); ok {
		<-d.released
		parts, err := m.(wire.Marshaler).MarshalWire()
		parts.Free()
		return err
	}
	return nil
}

// planeOf is a stream to a control plane that says what it is given.
type planeOf struct {
	grpc.ClientStream
	life context.Context
	says chan []byte
}

// Header implements grpc.ClientStream.
func (p *planeOf) Header() (metadata.MD, error) { return nil, nil }

// RecvMsg implements grpc.ClientStream.
func (p *planeOf) RecvMsg(m any) error {
	select {
	case *m.(*wire.Bytes) = <-p.says:
		return nil
	case <-p.life.Done():
		return p.life.Err()
	}
}

// passage is a stream of which both sides are played.
type passage struct {
	*stream
	*deaf
	says chan []byte
	over context.CancelFunc
	all  sync.WaitGroup
}

func newPassage(t *testing.T, s *Server, caller string, delta bool) *passage {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &passage{deaf: &deaf{got: make(chan struct{}, 10), released: make(chan struct{})}, says: make(chan []byte), over: cancel}
	p.stream = &stream{
		server: s, caller: caller, life: ctx, method: method{delta: delta}, nodeID: "n", down: p.deaf, up: &planeOf{life: ctx, says: p.says},
		inbox: make(chan incoming), wake: make(chan struct{}, 1), end: make(chan error, 10),
	}
	p.all.Go(func() { _ = p.responses(ctx) })
	p.all.Go(func() { _ = p.send(ctx) })
	return p
}

// ends ends the stream, as run does.
func (p *passage) ends() {
	p.over()
	close(p.released)
	p.all.Wait()
	p.close()
	p.doneWithAll()
}

// TestAnswersWaitForRoom in turns by caller, one that is larger than the room as well. One that has
// room for too long while others wait ends.
func TestAnswersWaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := benchServer()
		s.options.WriteTimeout = 1 << 60
		s.answers.room = share.NewRoom(400 << 10) // less than half of a response
		first, second, third := newPassage(t, s, "a", true), newPassage(t, s, "a", true), newPassage(t, s, "b", true)
		for i, p := range []*passage{first, second, third} {
			p.says <- saying(t, resourcev3.ListenerType, true, fmt.Sprint(i), 4000+i) // others each
			synctest.Wait()
		}
		if len(first.got) != 1 || len(second.got)+len(third.got) != 0 || s.answers.room.Waiting().Count != 2 {
			t.Fatalf("%d, %d and %d have responses, and %+v waits", len(first.got), len(second.got), len(third.got), s.answers.room.Waiting())
		}
		if time.Sleep(longestHold - time.Second); len(first.end) != 0 {
			t.Error("it ends too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := <-first.end; status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("it ends with %v", err)
		}
		first.ends()
		synctest.Wait()
		if len(second.got)+len(third.got) != 1 {
			t.Errorf("%d and %d have responses", len(second.got), len(third.got))
		}
		close(second.released)
		synctest.Wait()
		if len(third.got) != 1 || s.answers.room.Waiting().Count != 0 {
			t.Errorf("%d has a response, and %+v waits", len(third.got), s.answers.room.Waiting())
		}
		if time.Sleep(2 * longestHold); len(third.end) != 0 {
			t.Error("it ends although nobody waits")
		}
		second.released = make(chan struct{})
		second.ends()
		third.ends()
		if taken := s.answers.room.Taken(); taken != 0 {
			t.Errorf("%d bytes are taken in the end", taken)
		}
	})
}

// TestAPushThatWaitsForRoomHoldsUpNothing of its stream: what has room would wait for it.
func TestAPushThatWaitsForRoomHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := benchServer()
		s.answers.room = share.NewRoom(400 << 10)
		p := newPassage(t, s, "a", false)
		close(p.released)
		p.says <- saying(t, clusters.typeURL(), false, "1", 4000)
		<-p.got
		synctest.Wait()
		ack, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: clusters.typeURL(), ResponseNonce: "1", VersionInfo: "1"})
		if err == nil {
			_, err = p.tells(ack)
		}
		if err != nil {
			t.Fatal(err)
		}
		other, _ := s.answers.room.Ask("b", 1<<20, nil)
		p.mu.Lock()
		p.ledgers[clusters].setDirty("cluster-0000", true)
		p.mu.Unlock()
		p.wakeUp()
		synctest.Wait()
		if waiting := s.answers.room.Waiting(); waiting.Count != 1 || len(p.got) != 0 {
			t.Fatalf("%+v waits, and %d are sent", waiting, len(p.got))
		}
		p.says <- saying(t, resourcev3.ListenerType, false, "2", 1)
		<-p.got // it does not wait
		other.Release()
		<-p.got
		synctest.Wait()
		if taken := s.answers.room.Taken(); taken != 0 {
			t.Errorf("%d bytes are taken in the end", taken)
		}
		p.released = make(chan struct{})
		p.ends()
	})
}

// counting is a stream to a control plane that counts what is asked for.
type counting struct {
	grpc.ClientStream
	asked atomic.Int32
}

// RecvMsg implements grpc.ClientStream.
func (c *counting) RecvMsg(m any) error {
	c.asked.Add(1)
	return c.ClientStream.RecvMsg(m)
}

// TestAnswersWaitInTheControlPlane: a large response is not asked for before there is room for it.
func TestAnswersWaitInTheControlPlane(t *testing.T) {
	t.Parallel()
	says := saying(t, clusters.typeURL(), true, "1", 4000)
	server := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec()), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		out := wire.Bytes(says)
		if err := s.SendMsg(&out); err != nil {
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
	s.answers.room = share.NewRoom(400 << 10)
	s.upstream.maxBytes = 64 << 20
	s.upstream.services = []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{
		GoogleGrpc: &corev3.GrpcService_GoogleGrpc{TargetUri: listener.Addr().String(), StatPrefix: "x"},
	}}}
	ctx, cancel := context.WithCancel(t.Context())
	up, leave, err := s.upstream.open(ctx, &method{upstream: "/" + aggregated + "/DeltaAggregatedResources"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := s.answers.room.Ask("other", 1<<20, nil)
	asks := &counting{ClientStream: up}
	st := &stream{server: s, caller: "a", life: ctx, method: method{delta: true}, nodeID: "n", up: asks, inbox: make(chan incoming)}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = st.responses(ctx) }()
	for s.answers.room.Waiting().Count == 0 {
		runtime.Gosched()
	}
	if asked := asks.asked.Load(); asked != 0 {
		t.Error("it is asked for")
	}
	other.Release()
	if m := <-st.inbox; !bytes.Equal(m.wire, says) || m.place == nil {
		t.Errorf("%d bytes come, want %d; room: %v", len(m.wire), len(says), m.place)
	}
	cancel()
	<-ended
	leave(false)
}
