package inflight_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"hdsd/internal/inflight"
	"hdsd/internal/share"
	"hdsd/internal/wire"
)

const (
	total       = 1 << 20
	messageHead = 5 // bytes: a flag and the length
)

// site is a gRPC server with a budget of a MiB. Its handler takes a message each time it
// may, and echoes how many bytes it got.
type site struct {
	*testing.T
	pool    *share.Pool
	address string

	mu   sync.Mutex
	may  map[string]chan struct{} // by method
	late []int
}

// turns of a handler to ask for a message.
func (s *site) turns(method string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.may[method] == nil {
		s.may[method] = make(chan struct{}, 100)
	}
	return s.may[method]
}

// let lets the handler of a method ask for n messages.
func (s *site) let(method string, n int) {
	for range n {
		s.turns("/a/" + method) <- struct{}{}
	}
}

func newSite(t *testing.T, each int64) *site {
	t.Helper()
	s := &site{T: t, may: make(map[string]chan struct{}), pool: share.NewPool(share.Limit{
		What: "bytes", Field: "limits.bytes", Total: total, EachField: "limits.bytes_each", Each: each,
	})}
	b := &inflight.Budget{Pool: s.pool, Largest: 32 << 20, LargestField: "limits.largest", Patience: 500 * time.Millisecond, Arrival: 500 * time.Millisecond, Late: func(_ string, bytes int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = append(s.late, bytes)
	}}
	server := grpc.NewServer(wire.ServerOption(), grpc.Creds(b.Credentials(insecure.NewCredentials())), grpc.StreamInterceptor(b.Stream),
		grpc.MaxRecvMsgSize(64<<20), grpc.UnknownServiceHandler(s.handle))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return s
}

func (s *site) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	may := s.turns(method)
	for {
		select {
		case <-may:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
		var m wire.Bytes
		if err := stream.RecvMsg(&m); err != nil {
			return err
		}
		if string(m) == "end" {
			return nil
		}
		answer := wire.Bytes(fmt.Sprint(len(m)))
		if err := stream.SendMsg(&answer); err != nil {
			return err
		}
	}
}

func (s *site) dial() *grpc.ClientConn {
	s.Helper()
	c, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec())))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	return c
}

func (s *site) open(c *grpc.ClientConn, method string) (grpc.ClientStream, context.CancelFunc) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	stream, err := c.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/a/"+method)
	if err != nil {
		s.Fatal(err)
	}
	return stream, cancel
}

func (s *site) send(stream grpc.ClientStream, bytes int) {
	s.Helper()
	m := make(wire.Bytes, bytes)
	if err := stream.SendMsg(&m); err != nil {
		s.Fatal(err)
	}
}

func (s *site) receive(stream grpc.ClientStream, want string) {
	s.Helper()
	var m wire.Bytes
	if err := stream.RecvMsg(&m); err != nil || string(m) != want {
		s.Fatalf("got %q, %v, want %q", m, err, want)
	}
}

// refused checks that a stream ends because of the budget, and says why.
func (s *site) refused(stream grpc.ClientStream, field string) {
	s.Helper()
	var m wire.Bytes
	if err := stream.RecvMsg(&m); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), field) {
		s.Fatalf("got %q, %v, want RESOURCE_EXHAUSTED and %s", m, err, field)
	}
}

func (s *site) eventually(what string, ok func() bool) {
	s.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			s.Fatalf("not within 30 s: %s (%+v)", what, s.pool.Usage())
		}
		time.Sleep(time.Millisecond)
	}
}

// leased is what a stream that had none takes for messages of so many bytes.
func leased(messages ...int64) (bytes int64) {
	for _, content := range messages {
		bytes += content + inflight.MessageBytes
	}
	return bytes - inflight.FreeBytes
}

func (s *site) taken(want int64) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d bytes taken", want), func() bool { return s.pool.Usage().Taken == want })
}

// TestALeaseLastsUntilTheHandlerAsksForMore also shows that the number of a stream can
// still be read from grpc.
func TestALeaseLastsUntilTheHandlerAsksForMore(t *testing.T) {
	s := newSite(t, 0)
	stream, _ := s.open(s.dial(), "a")
	s.send(stream, 600_000)
	s.taken(leased(600_000))
	s.let("a", 1)
	s.receive(stream, "600000")
	s.taken(leased(600_000)) // the handler may be at work on it
	s.send(stream, 1000)
	s.taken(leased(600_000, 1000))
	s.let("a", 1)
	s.receive(stream, "1000")
	s.taken(1000 + inflight.MessageBytes)
	m := wire.Bytes("end")
	if err := stream.SendMsg(&m); err != nil {
		t.Fatal(err)
	}
	s.let("a", 1)
	if err := stream.RecvMsg(&m); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	s.taken(0)
	if callers := s.pool.Usage().Callers; callers != 0 {
		t.Errorf("%d callers are left", callers)
	}
}

func TestAMessageWaitsForRoom(t *testing.T) {
	s := newSite(t, 0)
	one, _ := s.open(s.dial(), "one")
	s.send(one, 600_000)
	s.taken(leased(600_000))
	other, _ := s.open(s.dial(), "other")
	s.send(other, 600_000)
	s.let("one", 2) // it asks for another: it has done with the first
	s.let("other", 1)
	s.receive(one, "600000")
	s.receive(other, "600000")
}

func TestAMessageWithoutRoomIsRefusedAlone(t *testing.T) {
	s := newSite(t, 0)
	holder, release := s.open(s.dial(), "holder")
	s.send(holder, 700_000)
	s.taken(leased(700_000))
	c := s.dial()
	calm, _ := s.open(c, "calm")
	bomb, _ := s.open(c, "bomb")
	s.send(bomb, 600_000) // more than is free, and not less than the holder has less what is missing
	s.send(calm, 10)
	s.let("calm", 1)
	s.let("bomb", 1)
	s.refused(bomb, "limits.bytes")
	s.receive(calm, "10")
	release()
	s.taken(0)
}

func TestACallerHasItsShare(t *testing.T) {
	s := newSite(t, 1000)
	c := s.dial()
	one, _ := s.open(c, "one")
	s.send(one, 1400)
	s.taken(leased(1400))
	two, _ := s.open(c, "two")
	s.send(two, 1400)
	three, _ := s.open(c, "three")
	s.send(three, 5000) // never has room: it is refused at once
	s.let("two", 1)
	s.let("three", 1)
	s.refused(two, "limits.bytes_each")
	s.refused(three, "limits.bytes_each")
	s.let("one", 1)
	s.receive(one, "1400")
}

// raw speaks HTTP/2 by hand.
type raw struct {
	s    *site
	conn net.Conn
	to   *http2.Framer
}

func (s *site) raw() *raw {
	s.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		s.Fatal(err)
	}
	r := &raw{s, c, http2.NewFramer(c, c)}
	if err := r.to.WriteSettings(); err != nil {
		s.Fatal(err)
	}
	return r
}

// announce opens a stream and sends the head of a message, in parts, and a little of it.
func (r *raw) announce(id uint32, size int, parts ...int) {
	r.s.Helper()
	var block strings.Builder
	to := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/a/raw"}, {":authority", "x"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		if err := to.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			r.s.Fatal(err)
		}
	}
	if err := r.to.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(block.String()), EndHeaders: true}); err != nil {
		r.s.Fatal(err)
	}
	head := []byte{0, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), 'x', 'x'}
	for _, n := range append(parts, len(head)) {
		n = min(n, len(head))
		if err := r.to.WriteData(id, false, head[:n]); err != nil {
			r.s.Fatal(err)
		}
		head = head[n:]
	}
}

// gone waits for the server to close the connection.
func (r *raw) gone() {
	r.s.Helper()
	_ = r.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.Copy(io.Discard, r.conn); err != nil && strings.Contains(err.Error(), "timeout") {
		r.s.Error("the connection stays open")
	}
}

func TestALateMessageEndsItsConnection(t *testing.T) {
	s := newSite(t, 0)
	r := s.raw()
	r.announce(1, 500_000)
	s.taken(leased(500_000))
	time.Sleep(time.Second) // nobody asks for it: it is not late
	s.taken(leased(500_000))
	s.let("raw", 1)
	r.gone()
	s.taken(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.late) != 1 || s.late[0] < 499_990 {
		t.Errorf("late were %v", s.late)
	}
}

func TestWhoHasMostMakesRoom(t *testing.T) {
	s := newSite(t, 0)
	r := s.raw()
	r.announce(1, 1_000_000)
	s.taken(leased(1_000_000))
	modest, _ := s.open(s.dial(), "modest")
	s.send(modest, 300_000)
	r.gone()
	s.let("modest", 1)
	s.receive(modest, "300000")
	s.taken(leased(300_000))
}

// TestAHeadInParts: grpc has seen a part of it when it is refused. If that part has a
// digit of the length, the connection ends.
func TestAHeadInParts(t *testing.T) {
	for _, size := range []int{1 << 16, 1 << 25} {
		for _, parts := range [][]int{{1}, {2}, {1, 1}, {4}, {1, 1, 1, 1}, {2, 2}} {
			s := newSite(t, 1000)
			s.let("raw", 1)
			r := s.raw()
			r.announce(1, size, parts...)
			seen := 0
			for _, n := range parts {
				seen += n
			}
			if size>>(8*(messageHead-seen)) > 0 {
				r.gone()
			} else {
				r.ended()
			}
			s.taken(0)
		}
	}
}

// ended waits for the server to end a stream.
func (r *raw) ended() {
	r.s.Helper()
	_ = r.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		f, err := r.to.ReadFrame()
		if err != nil {
			r.s.Fatal(err)
		}
		if h, ok := f.(*http2.HeadersFrame); ok && h.StreamEnded() {
			return
		}
	}
}

func TestEndedStreamsHaveNothing(t *testing.T) {
	s := newSite(t, 0)
	c := s.dial()
	_, cancel := s.open(c, "a")
	cancel()
	for range 5 {
		stream, cancel := s.open(c, "a")
		s.send(stream, 100_000)
		s.taken(leased(100_000))
		cancel()
		s.taken(0)
	}
	stream, _ := s.open(c, "a")
	s.send(stream, 100_000)
	s.taken(leased(100_000))
	c.Close()
	s.taken(0)
}

// TestRefusalsDoNotHoldUpTheirConnection: a stream is answered beside many refusals on its
// connection. TestAConnectionWaitsForATenthOfTheTime holds how long they may hold it up together.
func TestRefusalsDoNotHoldUpTheirConnection(t *testing.T) {
	s := newSite(t, 0)
	holder, _ := s.open(s.dial(), "holder")
	s.send(holder, 700_000)
	s.taken(leased(700_000))
	c := s.dial()
	calm, _ := s.open(c, "calm")
	for i := range 60 {
		bomb, _ := s.open(c, fmt.Sprint("bomb", i))
		m := make(wire.Bytes, 600_000)
		_ = bomb.SendMsg(&m) // it may have ended already
		s.let(fmt.Sprint("bomb", i), 1)
	}
	s.send(calm, 10)
	s.let("calm", 1)
	s.receive(calm, "10")
}

func TestATooLargeMessageNamesTheLimit(t *testing.T) {
	s := newSite(t, 0)
	c := s.dial()
	stream, _ := s.open(c, "a")
	s.let("a", 1)
	m := make(wire.Bytes, 33<<20)
	_ = stream.SendMsg(&m) // it may have ended already
	s.refused(stream, "limits.largest")
	calm, _ := s.open(c, "calm")
	s.send(calm, 10)
	s.let("calm", 1)
	s.receive(calm, "10")
}
