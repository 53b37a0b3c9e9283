package inflight_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
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

	"hdsd/internal/wire"
	"hdsd/peer/limit/inflight"
)

const (
	total       = 1 << 20
	messageHead = 5 // bytes: a flag and the length
)

// site is a gRPC server with a budget. Large messages have a half of it, small ones the other. Its handler takes a message each time it
// may, and echoes how many bytes it got.
type site struct {
	*testing.T
	*inflight.Budget
	address string

	mu    sync.Mutex
	may   map[string]chan struct{} // by method
	late  []int
	idles int // handlers begin when so many messages are here
}

// idle has handlers begin when so many messages are here.
func (s *site) idle(messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idles = messages
}

// begin is an interceptor that runs before the budget's.
func (s *site) begin(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	s.mu.Lock()
	idles := s.idles
	s.mu.Unlock()
	if idles > 0 {
		s.eventually("its message has arrived", func() bool { return inflight.Arrived(stream.Context(), idles) })
	}
	return handle(server, stream)
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

func newSite(t *testing.T, half int64) *site {
	t.Helper()
	s := &site{T: t, Budget: inflight.NewBudget(2 * half), may: make(map[string]chan struct{})}
	s.Largest, s.LargestField, s.Arrival = 32<<20, "limits.largest", 500*time.Millisecond
	s.Late = func(_ string, bytes int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = append(s.late, bytes)
	}
	server := grpc.NewServer(append(append([]grpc.ServerOption{grpc.ChainStreamInterceptor(s.begin)}, s.ServerOptions(insecure.NewCredentials())...), wire.ServerOption(),
		grpc.MaxRecvMsgSize(64<<20), grpc.UnknownServiceHandler(s.handle))...)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "watches", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{StreamName: "Watch", Handler: watch, ServerStreams: true}}}, s)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "unary", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: s.echo}}}, s)
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

// echo is a unary call. It is answered when its turn has come.
func (s *site) echo(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // as grpc calls it
	var m wire.Bytes
	if err := decode(&m); err != nil {
		return nil, err
	}
	select {
	case <-s.turns("/unary/Echo"):
	case <-ctx.Done():
	}
	answer := wire.Bytes(fmt.Sprint(len(m)))
	return &answer, nil
}

func (s *site) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	may := s.turns(method)
	if strings.HasPrefix(method, "/a/modest") {
		inflight.Check(stream.Context(), func(bytes int) error {
			if bytes > 10_000 {
				return status.Error(codes.ResourceExhausted, "it is modest")
			}
			return nil
		})
	}
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

// sendLater sends a message that has to wait. Who receives on the stream sees whether it did.
func (s *site) sendLater(stream grpc.ClientStream, bytes int) {
	m := make(wire.Bytes, bytes)
	go func() { _ = stream.SendMsg(&m) }()
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
			s.Fatalf("not within 30 s: %s (%d bytes are taken, %+v wait)", what, s.Room.Taken(), s.Room.Waiting())
		}
		time.Sleep(time.Millisecond)
	}
}

func (s *site) taken(want int64) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d bytes taken", want), func() bool { return s.Room.Taken() == want })
}

func (s *site) waiting(want int) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d wait", want), func() bool { return s.Room.Waiting().Count == want })
}

// TestRoomLastsUntilTheHandlerAsksForMore also shows that the number of a stream can still be
// read from grpc.
func TestRoomLastsUntilTheHandlerAsksForMore(t *testing.T) {
	s := newSite(t, total)
	s.Wide = nil // else the second message needs no room
	stream, _ := s.open(s.dial(), "a")
	s.send(stream, 600_000)
	s.taken(600_000 + inflight.MessageBytes)
	s.let("a", 1)
	s.receive(stream, "600000")
	s.taken(600_000 + inflight.MessageBytes) // the handler may be at work on it
	s.let("a", 1)
	s.taken(0)
	s.send(stream, 5000)
	s.receive(stream, "5000")
	s.taken(5000 + inflight.MessageBytes)
	m := wire.Bytes("end")
	if err := stream.SendMsg(&m); err != nil {
		t.Fatal(err)
	}
	s.let("a", 1)
	if err := stream.RecvMsg(&m); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	s.taken(0)
}

// TestAMessageWaitsForRoom, and holds up nothing else on its connection: other streams, and
// PINGs.
func TestAMessageWaitsForRoom(t *testing.T) {
	s := newSite(t, total)
	holder, _ := s.open(s.dial(), "holder")
	s.send(holder, 600_000)
	s.taken(600_000 + inflight.MessageBytes)
	c := s.dial()
	other, _ := s.open(c, "other")
	s.sendLater(other, 600_000)
	s.let("other", 1)
	s.waiting(1)
	calm, _ := s.open(c, "calm")
	for range 20 {
		s.send(calm, 4000)
		s.let("calm", 1)
		s.receive(calm, "4000")
	}
	r := s.raw()
	r.announce(1, 600_000)
	s.waiting(2)
	if err := r.to.WritePing(false, [8]byte{1}); err != nil {
		t.Fatal(err)
	}
	r.until("the PING is answered", func(f http2.Frame) bool {
		ping, ok := f.(*http2.PingFrame)
		return ok && ping.IsAck()
	})
	r.conn.Close()
	s.waiting(1)
	s.let("holder", 2) // it asks for another: it has done with the first
	s.receive(holder, "600000")
	s.receive(other, "600000")
}

// TestAUnaryCallWaitsForRoom: no handler asks for its message.
func TestAUnaryCallWaitsForRoom(t *testing.T) {
	s := newSite(t, total)
	c := s.dial()
	answered := make(chan error)
	for range 3 {
		go func() {
			m, answer := make(wire.Bytes, 600_000), wire.Bytes(nil)
			err := c.Invoke(t.Context(), "/unary/Echo", &m, &answer)
			if err == nil && string(answer) != "600000" {
				err = fmt.Errorf("answered %s", answer)
			}
			answered <- err
		}()
	}
	for waiting := 2; waiting >= 0; waiting-- {
		s.waiting(waiting)
		s.taken(600_000 + inflight.MessageBytes)
		s.turns("/unary/Echo") <- struct{}{}
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	s.taken(0)
}

// exchange sends messages on a stream, as fast as it may, and checks that all were heard.
func (s *site) exchange(stream grpc.ClientStream, sizes []int) {
	go func() {
		for _, size := range sizes {
			m := make(wire.Bytes, size)
			if stream.SendMsg(&m) != nil {
				return // RecvMsg says why
			}
		}
	}()
	for _, size := range sizes {
		var m wire.Bytes
		if err := stream.RecvMsg(&m); err != nil || string(m) != fmt.Sprint(size) {
			s.Errorf("%d bytes: %q, %v", size, m, err)
			return
		}
	}
}

// TestHonestStreamsLoseNothing: fifty that send at once, with room for two messages, all have
// them heard.
func TestHonestStreamsLoseNothing(t *testing.T) {
	s := newSite(t, 650_000)
	var all sync.WaitGroup
	for i := range 50 {
		stream, _ := s.open(s.dial(), fmt.Sprint(i))
		sizes := slices.Repeat([]int{300_000}, 20)
		s.let(fmt.Sprint(i), len(sizes)+1) // it has done with the last one, too
		all.Go(func() { s.exchange(stream, sizes) })
	}
	all.Wait()
	if len(s.late) > 0 {
		t.Errorf("late were %v", s.late)
	}
}

// TestAllArrive: whatever is sent on however many streams and connections, and however little
// there is for it, nothing waits for ever.
func TestAllArrive(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newSite(t, 1+random.Int64N(100_000))
		s.Arrival = time.Hour
		var all sync.WaitGroup
		for range 1 + random.IntN(10) {
			c := s.dial()
			for range 1 + random.IntN(20) {
				sizes := make([]int, random.IntN(30))
				for i := range sizes {
					sizes[i] = random.IntN([]int{10, 1000, 5000, 200_000}[random.IntN(4)])
				}
				method := fmt.Sprint(random.Uint64())
				stream, _ := s.open(c, method)
				s.let(method, len(sizes)+1)
				all.Go(func() { s.exchange(stream, sizes) })
			}
		}
		if all.Wait(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestCallersTakeTurns: a connection with many streams does not keep the others waiting.
func TestCallersTakeTurns(t *testing.T) {
	s := newSite(t, 600_000)
	holder, release := s.open(s.dial(), "holder")
	s.send(holder, 500_000)
	s.taken(500_000 + inflight.MessageBytes)
	crowd := s.raw()
	for i := range uint32(50) {
		crowd.announce(2*i+1, 500_000)
	}
	s.waiting(50)
	modest, _ := s.open(s.dial(), "other")
	s.let("other", 1)
	s.sendLater(modest, 500_000)
	s.waiting(51)
	release()
	s.waiting(50)  // the first of the crowd has its turn
	crowd.reset(1) // and then the other one
	s.receive(modest, "500000")
	s.waiting(49)
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
	r.until("the windows are told", func(f http2.Frame) bool {
		told, ok := f.(*http2.SettingsFrame)
		if !ok || told.IsAck() {
			return false
		}
		if size, _ := told.Value(http2.SettingInitialWindowSize); size != inflight.FirstWindow {
			s.Errorf("a stream has a window of %d bytes", size)
		}
		return true
	})
	if err := r.to.WriteSettingsAck(); err != nil {
		s.Fatal(err)
	}
	return r
}

// until reads until there is a certain frame.
func (r *raw) until(what string, is func(http2.Frame) bool) {
	r.s.Helper()
	_ = r.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		f, err := r.to.ReadFrame()
		if err != nil {
			r.s.Fatal(what, err)
		}
		if is(f) {
			return
		}
	}
}

func (r *raw) reset(id uint32) {
	r.s.Helper()
	if err := r.to.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
		r.s.Fatal(err)
	}
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

// TestALateMessageEndsItsConnection: who has room and does not send loses it.
func TestALateMessageEndsItsConnection(t *testing.T) {
	s := newSite(t, total)
	r := s.raw()
	r.announce(1, 500_000)
	r.gone()
	s.taken(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.late) != 1 || s.late[0] < 499_990 {
		t.Errorf("late were %v", s.late)
	}
}

// TestAHeadInParts: grpc has seen a part of it when it is refused. If that part has a digit of the
// length, the connection ends.
func TestAHeadInParts(t *testing.T) {
	for _, size := range []int{1 << 16, 1 << 25} {
		for _, parts := range [][]int{{}, {1}, {2}, {1, 1}, {4}, {1, 1, 1, 1}, {2, 2}} {
			s := newSite(t, total)
			s.Largest = 1000
			s.let("raw", 1)
			r := s.raw()
			r.announce(1, size, parts...)
			seen := 0
			for _, n := range parts {
				seen += n
			}
			if size>>(8*(messageHead-seen)) > 0 && seen > 0 {
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
	r.until("the stream is ended", func(f http2.Frame) bool {
		h, ok := f.(*http2.HeadersFrame)
		return ok && h.StreamEnded()
	})
}

func TestEndedStreamsHaveNothing(t *testing.T) {
	s := newSite(t, total)
	c := s.dial()
	_, cancel := s.open(c, "a")
	cancel()
	for range 5 {
		stream, cancel := s.open(c, "a")
		s.send(stream, 100_000)
		s.taken(100_000 + inflight.MessageBytes)
		cancel()
		s.taken(0)
	}
	stream, _ := s.open(c, "a")
	s.send(stream, 100_000)
	s.taken(100_000 + inflight.MessageBytes)
	c.Close()
	s.taken(0)
}

// TestBombs are refused before they are read, and nothing else is on their connection.
func TestBombs(t *testing.T) {
	s := newSite(t, total)
	c := s.dial()
	calm, _ := s.open(c, "calm")
	for method, bomb := range map[string]struct {
		size int
		says string
	}{"any": {33 << 20, "limits.largest"}, "modest": {10_001, "it is modest"}} {
		stream, _ := s.open(c, method)
		s.send(stream, 10)
		s.let(method, 2)
		s.receive(stream, "10")
		m := make(wire.Bytes, bomb.size)
		_ = stream.SendMsg(&m) // it may have ended already
		s.refused(stream, bomb.says)
		s.taken(0)
	}
	modest, _ := s.open(c, "modest 2")
	s.send(modest, 10_000)
	s.let("modest 2", 1)
	s.receive(modest, "10000")
	m, answer := make(wire.Bytes, 33<<20), wire.Bytes(nil)
	if err := c.Invoke(t.Context(), "/unary/Echo", &m, &answer); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a bomb as a unary call: %v", err)
	}
	s.send(calm, 10)
	s.let("calm", 1)
	s.receive(calm, "10")
}
