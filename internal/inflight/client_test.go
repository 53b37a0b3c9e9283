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

	"hdsd/internal/inflight"
)

// counted is a connection that counts what is read of it.
type counted struct {
	net.Conn
	read *atomic.Int64
}

// Read implements net.Conn.
func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// follow has a server send messages of so many bytes on each stream, and then end it with an error.
// It returns a client, and how many bytes have come.
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
			return counted{c, read}, err
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

// TestAClientKnowsWhatComes before it asks for it, and until then no more comes than may.
func TestAClientKnowsWhatComes(t *testing.T) {
	sizes := []int{0, 100, 70_000, 1, 8 << 20, 65_536}
	conn, read := follow(t, sizes...)
	var streams []grpc.ClientStream
	var all []*inflight.Coming
	for range 3 {
		s := open(t, t.Context(), conn)
		streams, all = append(streams, s), append(all, inflight.Follow(s))
	}
	for _, size := range sizes {
		for i, coming := range all {
			bytes, err := coming.Next(t.Context())
			if err != nil || bytes < size+5 || bytes > size+15 {
				t.Fatalf("stream %d: %d bytes come, %v, want some more than %d", i, bytes, err, size)
			}
		}
		before := read.Load()
		for range 20 { // what may come, comes meanwhile
			if err := conn.Invoke(t.Context(), "/ping/pong", &wrapperspb.StringValue{}, &wrapperspb.StringValue{}); err != nil {
				t.Fatal(err)
			}
		}
		if more := read.Load() - before; more > 3*(inflight.Ahead+8<<10) {
			t.Errorf("before %d bytes are asked for, %d have come", size, more)
		}
		for _, s := range streams {
			m := &wrapperspb.StringValue{}
			if err := s.RecvMsg(m); err != nil || len(m.GetValue()) != size {
				t.Fatalf("got %d bytes, %v, want %d", len(m.GetValue()), err, size)
			}
		}
	}
	for i, coming := range all {
		if bytes, err := coming.Next(t.Context()); bytes != 0 || err != nil {
			t.Errorf("%d bytes, %v, come after the end", bytes, err)
		}
		if err := streams[i].RecvMsg(&wrapperspb.StringValue{}); err == nil || !strings.Contains(err.Error(), "the end") {
			t.Errorf("it ends with %v", err)
		}
	}
}

// TestNobodyWaitsForWhatDoesNotCome: not when the client ends the stream, nor when the connection
// goes, nor without options.
func TestNobodyWaitsForWhatDoesNotCome(t *testing.T) {
	conn, _ := follow(t, 10, 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	s := open(t, ctx, conn)
	coming := inflight.Follow(s)
	for range 2 { // the second one is never asked for
		if bytes, err := coming.Next(ctx); bytes == 0 || err != nil {
			t.Fatalf("%d bytes, %v", bytes, err)
		}
	}
	own, stop := context.WithCancel(t.Context())
	stop()
	if _, err := coming.Next(own); !errors.Is(err, context.Canceled) {
		t.Errorf("the own context ends it with %v", err)
	}
	cancel()
	if bytes, err := coming.Next(t.Context()); bytes != 0 || err != nil {
		t.Errorf("%d bytes, %v, after the client has ended the stream", bytes, err)
	}
	other := inflight.Follow(open(t, t.Context(), conn))
	for range 2 {
		if _, err := other.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.Close()
	if bytes, err := other.Next(t.Context()); bytes != 0 || err != nil {
		t.Errorf("%d bytes, %v, after the connection has gone", bytes, err)
	}
	if bytes, err := (*inflight.Coming)(nil).Next(t.Context()); bytes != 0 || err != nil {
		t.Errorf("%d bytes, %v, where nothing is known", bytes, err)
	}
}
