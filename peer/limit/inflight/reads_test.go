package inflight_test

import (
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/internal/wire"
	"hdsd/peer/limit/inflight"
)

// observed are credentials that note whether grpc reads into buffers of its pool.
type observed struct {
	credentials.TransportCredentials
	pooled *atomic.Bool
}

func (o *observed) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := o.TransportCredentials.ServerHandshake(raw)
	return &observedConn{secured, o.pooled}, info, err
}

type observedConn struct {
	net.Conn
	pooled *atomic.Bool
}

func (c *observedConn) Read(into []byte) (int, error) {
	callers := make([]uintptr, 20)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); strings.HasSuffix(f.Function, ".ReadOnReady") {
			c.pooled.Store(true)
		}
	}
	return c.Conn.Read(into)
}

// TestGRPCReadsIntoBuffersOfAPool shows whether a new version of grpc still does.
func TestGRPCReadsIntoBuffersOfAPool(t *testing.T) {
	var pooled atomic.Bool
	b := inflight.NewBudget(total)
	server := grpc.NewServer(append(b.ServerOptions(&observed{insecure.NewCredentials(), &pooled}), wire.ServerOption(),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return nil }))...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	defer func() { server.Stop(); <-done }()
	client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	stream, err := client.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.RecvMsg(new(wire.Bytes)) // the end
	if !pooled.Load() {
		t.Error("grpc allocates a buffer for each connection")
	}
}
