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

// perConnection is how many streams share a connection to the control plane. Servers may
// allow no more than 100.
const perConnection = 90

// upstream opens streams to the control plane.
type upstream struct {
	services []*corev3.GrpcService
	maxBytes int

	mu    sync.Mutex
	lines []*line // open connections
}

// line is one connection. Its fields are guarded by upstream.mu. Load reports have lines of their
// own: servers may have one window for all streams of a connection, and reports that they do not
// read would fill it.
type line struct {
	conn    *grpc.ClientConn
	server  int
	loads   bool // it has streams of load reports only
	streams int
	failed  bool // gets no more streams
}

// open opens a stream, to the first server that takes it. The caller must call leave once
// the stream has ended.
func (u *upstream) open(ctx context.Context, method *method, extra metadata.MD) (stream grpc.ClientStream, leave func(failed bool), err error) {
	for server := range u.services {
		if stream, leave, err = u.openAt(ctx, server, method, extra); err == nil || ctx.Err() != nil {
			return stream, leave, err
		}
	}
	return nil, nil, err
}

func (u *upstream) openAt(ctx context.Context, server int, method *method, extra metadata.MD) (grpc.ClientStream, func(bool), error) {
	service := u.services[server]
	out, err := xds.WithMetadata(ctx, service)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	if given, _ := metadata.FromOutgoingContext(out); len(extra) > 0 {
		joined := given.Copy()
		maps.Copy(joined, extra) // the client's own, in place of hdsd's
		out = metadata.NewOutgoingContext(ctx, joined)
	}
	l, err := u.enter(server, method.loads)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	out, cancel := context.WithCancelCause(out)
	late := time.AfterFunc(xds.OpenTimeout(service), func() { cancel(errLate) })
	stream, err := l.conn.NewStream(out, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method.upstream)
	if !late.Stop() && err == nil {
		err = errLate
	}
	if err != nil {
		cancel(nil)
		u.leave(l, true)
		if errors.Is(context.Cause(out), errLate) {
			err = errLate
		}
		return nil, nil, unavailable(err)
	}
	return stream, func(failed bool) { cancel(nil); u.leave(l, failed) }, nil
}

var errLate = errors.New("no connection in time")

func unavailable(err error) error {
	return status.Errorf(codes.Unavailable, "the control plane behind the relay cannot be reached: %s", status.Convert(err).Message())
}

// enter returns a connection with one more stream.
func (u *upstream) enter(server int, loads bool) (*line, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.lines {
		if l.server == server && l.loads == loads && !l.failed && l.streams < perConnection {
			l.streams++
			return l, nil
		}
	}
	conn, err := xds.Dial(u.services[server], wire.Codec(), u.maxBytes, inflight.DialOptions)
	if err != nil {
		return nil, err
	}
	l := &line{conn: conn, server: server, loads: loads, streams: 1}
	u.lines = append(u.lines, l)
	return l, nil
}

// leave ends a stream's use of a connection. One that failed gets no more streams: the
// next one reads the files with certificates again.
func (u *upstream) leave(l *line, failed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l.failed = l.failed || failed
	if l.streams--; l.streams > 0 {
		return
	}
	for i, other := range u.lines {
		if other == l {
			u.lines = append(u.lines[:i], u.lines[i+1:]...)
			break
		}
	}
	_ = l.conn.Close() // nobody uses it
}
