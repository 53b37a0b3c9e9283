package inflight_test

import (
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"hdsd/internal/wire"
	"hdsd/peer/limit/inflight"
)

// watch is a call with one question and a stream of answers. It lasts as long as its client wants.
func watch(_ any, stream grpc.ServerStream) error {
	var m wire.Bytes
	if err := stream.RecvMsg(&m); err != nil {
		return err
	}
	answer := wire.Bytes("asked")
	if err := stream.SendMsg(&answer); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// asks begins a call with a question of so many bytes.
func (s *site) asks(bytes int) grpc.ClientStream {
	s.Helper()
	stream, err := s.dial().NewStream(s.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/watches/Watch")
	if err != nil {
		s.Fatal(err)
	}
	s.send(stream, bytes)
	return stream
}

// TestAQuestionHasRoomUntilItsHandlerHasIt, however long its answers go on. So it is small, and its
// client has to say that it is all.
func TestAQuestionHasRoomUntilItsHandlerHasIt(t *testing.T) {
	s := newSite(t, total)
	s.Wide = nil // else it needs no room
	stream := s.asks(10_000)
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	s.receive(stream, "asked")
	s.taken(0)
	s.refused(s.asks(inflight.LargestQuestion+100_000), "")
	s.asks(10_000)
	s.taken(10_000 + inflight.MessageBytes)
	s.taken(0)
	s.eventually("its client is late", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.late) == 1
	})
}

// TestAMessageThatWasFasterThanItsHandlerIsRefused for its size, as one that was slower.
func TestAMessageThatWasFasterThanItsHandlerIsRefused(t *testing.T) {
	s := newSite(t, total)
	var refused atomic.Int32
	s.Refused = func(string, error) { refused.Add(1) }
	s.idle(1)
	s.refused(s.asks(inflight.LargestQuestion+100_000), "16384")
	modest, _ := s.open(s.dial(), "modest")
	s.send(modest, 100_000)
	s.let("modest", 1)
	s.refused(modest, "it is modest")
	s.taken(0)
	if n := refused.Load(); n != 2 || len(s.late) > 0 {
		t.Errorf("%d were refused, late were %v", n, s.late)
	}
}

// TestATooLargeMessageBeforeAnotherOneIsRefused, although its handler begins when both are here.
func TestATooLargeMessageBeforeAnotherOneIsRefused(t *testing.T) {
	s := newSite(t, total)
	s.idle(2)
	modest, _ := s.open(s.dial(), "modest")
	s.send(modest, 20_000)
	s.send(modest, 1)
	s.let("modest", 1)
	s.refused(modest, "it is modest")
	s.taken(0)
}

// TestAQuestionMayWaitForRoom for longer than it may take to arrive.
func TestAQuestionMayWaitForRoom(t *testing.T) {
	s := newSite(t, 16*10_000)
	s.Wide = nil
	for range 16 { // half of the room is for small messages: this is more
		holder, _ := s.open(s.dial(), "holder")
		s.sendLater(holder, 10_000)
	}
	s.eventually("all is taken", func() bool { return s.Room.Waiting().Count > 0 })
	stream := s.asks(9000)
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	s.eventually("it waits for long", func() bool {
		w := s.Room.Waiting()
		return w.Count > 0 && time.Since(w.Since) > 2*s.Arrival
	})
	s.let("holder", 40)
	s.receive(stream, "asked")
}
