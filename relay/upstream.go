package relay

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"hdsd/internal/wire"
	"hdsd/peer/limit/inflight"
	"hdsd/source/xds"
)

// streamsPerConnection limits the streams that share a connection to the control plane. A server may
// allow no more than 100.
const streamsPerConnection = 90

// upstream opens streams to the control plane.
type upstream struct {
	services []*corev3.GrpcService
	maxBytes int

	mu          sync.Mutex
	connections []*connection
}

// connection is an open connection. upstream.mu guards its fields. Load reports have connections of their
// own: a server may have one window for all streams of a connection, and reports that it does not read
// would fill the window.
type connection struct {
	conn    *grpc.ClientConn
	server  int
	loads   bool // for streams of load reports only
	streams int
	failed  bool // it gets no more streams
}

// open opens a stream to the first server that takes it. The caller calls leave once the stream has
// ended.
func (u *upstream) open(ctx context.Context, method *method, extra metadata.MD) (stream grpc.ClientStream, leave func(failed bool), err error) {
	for server := range u.services {
		if stream, leave, err = u.openServer(ctx, server, method, extra); err == nil || ctx.Err() != nil {
			return stream, leave, err
		}
	}
	return nil, nil, err
}

func (u *upstream) openServer(ctx context.Context, server int, method *method, extra metadata.MD) (grpc.ClientStream, func(bool), error) {
	service := u.services[server]
	outgoing, err := xds.WithMetadata(ctx, service)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	if headers, _ := metadata.FromOutgoingContext(outgoing); len(extra) > 0 {
		joined := headers.Copy()
		maps.Copy(joined, extra) // the client's replace those of hdsd
		outgoing = metadata.NewOutgoingContext(ctx, joined)
	}
	l, err := u.enter(server, method.loads)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	outgoing, cancel := context.WithCancelCause(outgoing)
	timer := time.AfterFunc(xds.OpenTimeout(service), func() { cancel(errOpenTimeout) })
	stream, err := l.conn.NewStream(outgoing, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method.fullName)
	if !timer.Stop() && err == nil {
		err = errOpenTimeout
	}
	if err != nil {
		cancel(nil)
		u.leave(l, true)
		if errors.Is(context.Cause(outgoing), errOpenTimeout) {
			err = errOpenTimeout
		}
		return nil, nil, unavailable(err)
	}
	return stream, func(failed bool) { cancel(nil); u.leave(l, failed) }, nil
}

var errOpenTimeout = errors.New("no connection in time")

func unavailable(err error) error {
	return status.Errorf(codes.Unavailable, "the control plane behind the relay cannot be reached: %s", status.Convert(err).Message())
}

// enter returns a connection, and counts one more stream on it.
func (u *upstream) enter(server int, loads bool) (*connection, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.connections {
		if l.server == server && l.loads == loads && !l.failed && l.streams < streamsPerConnection {
			l.streams++
			return l, nil
		}
	}
	conn, err := xds.Dial(u.services[server], wire.Codec(), u.maxBytes, inflight.DialOptions)
	if err != nil {
		return nil, err
	}
	l := &connection{conn: conn, server: server, loads: loads, streams: 1}
	u.connections = append(u.connections, l)
	return l, nil
}

// leave ends a stream's use of a connection. A connection that failed gets no more streams: the next
// one reads the files with certificates again.
func (u *upstream) leave(l *connection, failed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l.failed = l.failed || failed
	if l.streams--; l.streams > 0 {
		return
	}
	for i, c := range u.connections {
		if c == l {
			u.connections = append(u.connections[:i], u.connections[i+1:]...)
			break
		}
	}
	_ = l.conn.Close() // no stream uses it
}
