package inflight

import (
	"context"
	"reflect"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
)

// Stream is the interceptor that tells the budget how far handlers are.
func (b *Budget) Stream(server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c, id := find(s.Context())
	if c == nil || c.budget != b {
		return handle(server, s)
	}
	of := c.hold(id)
	if of == nil {
		return handle(server, s)
	}
	return handle(server, &counted{ServerStream: s, conn: c, of: of})
}

// counted is a stream that is counted. Its handler receives in one goroutine.
type counted struct {
	grpc.ServerStream
	conn    *conn
	of      *stream
	refusal error
}

// RecvMsg implements grpc.ServerStream.
func (s *counted) RecvMsg(m any) error {
	if s.refusal != nil {
		return s.refusal
	}
	s.conn.next(s.of)
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if refusal := s.conn.took(s.of); refusal != nil {
		s.refusal = refusal
	}
	return s.refusal
}

// find gives the connection of a call, and the number of its stream there.
func find(ctx context.Context) (*conn, uint32) {
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
// a new version of grpc still has it. Where it has not, a lease lasts as long as its
// stream.
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
