package inflight

import (
	"context"
	"reflect"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
)

// Stream is the interceptor that tells the budget how far handlers are.
func (b *Budget) Stream(server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if c, id := place(s.Context()); c != nil && c.budget == b {
		if of := c.handle(id); of != nil {
			s = &counted{ServerStream: s, conn: c, of: of}
		}
	}
	return handle(server, s)
}

// counted is a stream that is counted. Its handler receives in one goroutine.
type counted struct {
	grpc.ServerStream
	conn *conn
	of   *stream
}

// RecvMsg implements grpc.ServerStream.
func (s *counted) RecvMsg(m any) error {
	s.conn.next(s.of)
	if refusal := s.conn.refused(s.of); refusal != nil {
		return refusal
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.conn.took(s.of)
}

// Check has a call take only messages of which check gives no error, by their sizes. It is asked
// at the head of each message, before hdsd lets the client send more, and must not block.
func Check(ctx context.Context, check func(bytes int) error) {
	if c, s := find(ctx); s != nil {
		c.setCheck(s, check)
	}
}

// Waited returns for how long messages of a call have waited for room, in all, and for how long
// the present one has; zero: none waits.
func Waited(ctx context.Context) (all, present time.Duration) {
	c, s := find(ctx)
	if s == nil {
		return 0, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.waits.all(), s.waits.present()
}

// find gives the connection of a call, and its stream there, nil if that has ended.
func find(ctx context.Context) (*conn, *stream) {
	c, id := place(ctx)
	if c == nil {
		return nil, nil
	}
	return c, c.stream(id)
}

// place gives the connection of a call, and the number of its stream there.
func place(ctx context.Context) (*conn, uint32) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, 0
	}
	a, ok := p.Addr.(address)
	if !ok {
		return nil, 0
	}
	id, ok := streamID(grpc.ServerTransportStreamFromContext(ctx))
	if !ok {
		return nil, 0
	}
	return a.conn, id
}

// streamID reads the number of a stream, which grpc keeps to itself. A test shows whether
// a new version of grpc still has it. Where it has not, a message has room for as long as its
// stream lasts.
func streamID(s grpc.ServerTransportStream) (uint32, bool) {
	v := reflect.ValueOf(s)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return 0, false
	}
	id := v.Elem().FieldByName("id")
	if !id.IsValid() || id.Kind() != reflect.Uint32 {
		return 0, false
	}
	return uint32(id.Uint()), true
}
