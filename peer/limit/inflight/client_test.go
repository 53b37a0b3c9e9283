package inflight_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/peer/limit/inflight"
)

// countedConn counts the bytes that its owner reads.
type countedConn struct {
	net.Conn
	read *atomic.Int64
}

// Read implements net.Conn.
func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// follow starts a server that sends messages of some sizes on each stream, and then ends the stream
// with an error. It returns a client, and the number of bytes that the client has read.
func follow(t *testing.T, sizes ...int) (*grpc.ClientConn, *atomic.Int64) {
	t.Helper()
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if method, _ := grpc.Method(s.Context()); method == "/ping/pong" {
			return s.SendMsg(wrapperspb.String("pong"))
		}
		for _, size := range sizes {
			if err := s.SendMsg(wrapperspb.String(strings.Repeat("x", size))); err != nil {
				return err
			}
		}
		return errors.New("the end")
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	read := &atomic.Int64{}
	conn, err := grpc.NewClient(listener.Addr().String(), append(inflight.DialOptions(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			return countedConn{c, read}, err
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, read
}

func open(t *testing.T, ctx context.Context, conn *grpc.ClientConn) grpc.ClientStream { //nolint:revive // t comes first
	t.Helper()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAClientKnowsSizesBeforeItAsks: Next returns the size of a message before the client asks for
// it. Until then, the server sends no more than ReadAhead bytes.
func TestAClientKnowsSizesBeforeItAsks(t *testing.T) {
	sizes := []int{0, 100, 70_000, 1, 8 << 20, 65_536}
	conn, read := follow(t, sizes...)
	var streams []grpc.ClientStream
	var all []*inflight.Arrivals
	for range 3 {
		s := open(t, t.Context(), conn)
		streams, all = append(streams, s), append(all, inflight.Follow(s))
	}
	for _, size := range sizes {
		for i, arrivals := range all {
			bytes, err := arrivals.Next(t.Context())
			if err != nil || bytes < size+5 || bytes > size+15 {
				t.Fatalf("stream %d: size %d, %v, want the head and a little more than %d", i, bytes, err, size)
			}
		}
		before := read.Load()
		for range 20 { // meanwhile, the server sends as much as it may
			if err := conn.Invoke(t.Context(), "/ping/pong", &wrapperspb.StringValue{}, &wrapperspb.StringValue{}); err != nil {
				t.Fatal(err)
			}
		}
		if more := read.Load() - before; more > 3*(inflight.ReadAhead+8<<10) {
			t.Errorf("before the client asks for %d bytes, it has read %d", size, more)
		}
		for _, s := range streams {
			m := &wrapperspb.StringValue{}
			if err := s.RecvMsg(m); err != nil || len(m.GetValue()) != size {
				t.Fatalf("got %d bytes, %v, want %d", len(m.GetValue()), err, size)
			}
		}
	}
	for i, arrivals := range all {
		if bytes, err := arrivals.Next(t.Context()); bytes != 0 || err != nil {
			t.Errorf("size %d, %v, after the end", bytes, err)
		}
		if err := streams[i].RecvMsg(&wrapperspb.StringValue{}); err == nil || !strings.Contains(err.Error(), "the end") {
			t.Errorf("the stream ends with %v", err)
		}
	}
}

// TestNextReturnsAtTheEnd: when the client ends the stream, when the connection closes, and without
// DialOptions.
func TestNextReturnsAtTheEnd(t *testing.T) {
	conn, _ := follow(t, 10, 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	s := open(t, ctx, conn)
	arrivals := inflight.Follow(s)
	for range 2 { // nobody asks for the second message
		if bytes, err := arrivals.Next(ctx); bytes == 0 || err != nil {
			t.Fatalf("%d bytes, %v", bytes, err)
		}
	}
	canceled, stop := context.WithCancel(t.Context())
	stop()
	if _, err := arrivals.Next(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("Next ends with %v when its context ends", err)
	}
	cancel()
	if bytes, err := arrivals.Next(t.Context()); bytes != 0 || err != nil {
		t.Errorf("size %d, %v, after the client has ended the stream", bytes, err)
	}
	other := inflight.Follow(open(t, t.Context(), conn))
	for range 2 {
		if _, err := other.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.Close()
	if bytes, err := other.Next(t.Context()); bytes != 0 || err != nil {
		t.Errorf("size %d, %v, after the connection has closed", bytes, err)
	}
	if bytes, err := (*inflight.Arrivals)(nil).Next(t.Context()); bytes != 0 || err != nil {
		t.Errorf("size %d, %v, of no arrivals", bytes, err)
	}
}
