package inflight

import (
	"context"
	"reflect"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// largestQuestion bounds the only message of a call with a stream of answers, such as a watch.
const largestQuestion = 16 << 10

// Stream is the interceptor that reports the progress of handlers to the budget.
func (b *Budget) Stream(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if c, id := place(s.Context()); c != nil && c.budget == b {
		if st := c.handle(id, !info.IsClientStream); st != nil {
			if !info.IsClientStream {
				c.setCheck(st, checkQuestion)
			}
			s = &counted{s, c, st, !info.IsClientStream}
		}
	}
	return handle(server, s)
}

// counted is a stream with a budget. Its handler receives in one goroutine.
type counted struct {
	grpc.ServerStream
	conn     *conn
	stream   *stream
	question bool // it has one message
}

// checkQuestion refuses a message that is too large for a question.
func checkQuestion(bytes int) error {
	if bytes <= largestQuestion {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted, "the request of a call with a stream of answers may have up to %d bytes, and this one has %d: make it smaller", largestQuestion, bytes)
}

// RecvMsg implements grpc.ServerStream.
func (s *counted) RecvMsg(m any) error {
	if refusal := s.conn.next(s.stream); refusal != nil {
		return refusal
	}
	if s.question { // grpc also waits for the client's half-close
		defer s.conn.expect(s.stream)()
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if refusal := s.conn.delivered(s.stream); refusal != nil || !s.question {
		return refusal
	}
	return s.conn.next(s.stream) // the handler asks for no other
}

// Check makes a call refuse messages by their sizes if check returns an error. It runs at the
// head of each message, before hdsd lets the client send more, and must not block.
func Check(ctx context.Context, check func(bytes int) error) {
	if c, s := find(ctx); s != nil {
		c.setCheck(s, check)
	}
}

// Waited returns how long messages of a call have waited for room, in total and for the present
// one; zero: none waits.
func Waited(ctx context.Context) (total, present time.Duration) {
	c, s := find(ctx)
	if s == nil {
		return 0, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.waits.total(), s.waits.present()
}

// find returns the connection of a call, and its stream there, nil if it has ended.
func find(ctx context.Context) (*conn, *stream) {
	c, id := place(ctx)
	if c == nil {
		return nil, nil
	}
	return c, c.stream(id)
}

// connOf returns the connection of a call, nil if it has no Budget.
func connOf(ctx context.Context) *conn {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return nil
	}
	a, _ := p.Addr.(address)
	return a.conn
}

// place returns the connection of a call, and the number of its stream there.
func place(ctx context.Context) (*conn, uint32) {
	c := connOf(ctx)
	id, ok := streamID(grpc.ServerTransportStreamFromContext(ctx))
	if c == nil || !ok {
		return nil, 0
	}
	return c, id
}

// streamID reads the number of a stream, which grpc does not export. A test fails if a new
// version of grpc lacks it. Without it, a message has room for as long as its stream lasts.
func streamID(s grpc.ServerTransportStream) (uint32, bool) { return idOf(reflect.ValueOf(s)) }
