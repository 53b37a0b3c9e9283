package inflight

import "hdsd/peer/limit"

// stream is the part of a gRPC stream in flight. conn.mu guards it.
type stream struct {
	id        uint32
	head      [messageHeadBytes]byte
	headSize  int           // of head
	left      int           // missing bytes of the present message, which is the last one that has begun
	parts     int           // remaining parts of this message and those after it
	messages  sizes         // of messages that the handler has not finished; the last one is the present
	delivered bool          // the handler has the first of them
	turn      *limit.Turn   // room for the only message that has room; nil: none was requested
	room      bool          // the present message has room
	asks      bool          // the present message needs room and has none
	finished  bool          // the client has ended its side
	refusal   error         // of a message
	earlier   int           // number of messages before the refused one
	begun     chan struct{} // closed when a handler of a stream begins; nil: one has, and gets one message after the other
	ended     bool          // the stream has ended on the wire
	after     []func()      // called when ended

	allowance

	check func(bytes int) error // set by the handler; nil: it takes any message

	waits waits
	late  deadline
}

// allowance is the number of bytes that the client of a stream may send.
type allowance struct {
	window int          // bytes that the client may still send; negative if it did not know
	kept   int          // bytes received without room
	free   int          // bound of kept
	wide   *limit.Lease // lease of a wide window; nil: it has none
	listed bool         // among the conn's debtors
}

// ends reports whether the client has nothing more to send.
func (s *stream) ends() bool { return s.ended || s.finished || s.refusal != nil }

// owed returns how much more the client may send than it knows.
func (s *stream) owed() int {
	target := s.free - s.kept
	if s.room {
		target += s.left
	}
	return target - s.window
}

// occupy uses the room of the present message: its bytes no longer count as kept.
func (s *stream) occupy() {
	s.room, s.asks = true, false
	s.kept -= int(s.messages.last()) - s.left
	s.messages.occupyLast()
}

// done releases the message that the handler has finished, if any, and returns the callbacks to
// run without the lock.
func (s *stream) done() (callbacks []func()) {
	if !s.delivered {
		return nil
	}
	s.delivered = false
	kept := s.messages.pop()
	s.earlier = max(0, s.earlier-1)
	if s.kept -= int(kept); kept > 0 {
		return []func(){} // it had no room
	}
	t := s.turn
	s.turn = nil
	return []func(){t.Release}
}

// refuse records the first message that is refused, and the number of those before it.
func (s *stream) refuse(refusal error, earlier int) {
	if s.refusal == nil {
		s.refusal, s.earlier = refusal, earlier
	}
}

// refused returns the reason why the next message is refused, or nil.
func (s *stream) refused() error {
	if s.earlier > 0 {
		return nil // others come first
	}
	return s.refusal
}

// hide changes the head of a refused message of which grpc has a part already. The handler of a
// stream gets an empty message in its place, which stands for the refusal: grpc would replace an
// error of the handler. grpc itself refuses that of a unary call, whose handler would take it
// for a request. hide reports whether that was possible.
func (s *stream) hide(head []byte, size int) bool {
	if s.begun != nil {
		if size > 1 {
			return false
		}
		head[1-size] = impossible
		return true
	}
	for _, b := range s.head[1:max(1, size)] {
		if b != 0 {
			return false
		}
	}
	clear(head[max(0, 1-size):])
	return true
}

// giveUp ends the wait of the present message. It returns the turn that it waited for, or nil.
func (s *stream) giveUp() (t *limit.Turn) {
	s.asks = false
	if s.waits.present() > 0 {
		t, s.turn = s.turn, nil
		s.waits.end()
	}
	return t
}

// release releases everything, and returns the callbacks to run without the lock.
func (s *stream) release() (callbacks []func()) {
	s.ended = true
	s.late.stop()
	return append(s.after, s.turn.Release, s.wide.Release)
}

// sizes is a queue of the sizes of messages with their heads, in bytes. That of a message with room
// is negative.
type sizes struct {
	values []int64
	first  int
}

func (q *sizes) len() int { return len(q.values) - q.first }

func (q *sizes) push(size int64) {
	if len(q.values) == cap(q.values) && q.first > len(q.values)/2 { // rather than grow; moving few is not worth it
		q.values, q.first = q.values[:copy(q.values, q.values[q.first:])], 0
	}
	q.values = append(q.values, size)
}

func (q *sizes) last() int64 { return q.values[len(q.values)-1] }

// occupyLast records that the last message has room.
func (q *sizes) occupyLast() { q.values[len(q.values)-1] *= -1 }

// size returns the size of the i-th message without its head.
func (q *sizes) size(i int) int {
	size := q.values[q.first+i]
	return int(max(size, -size)) - messageHeadBytes
}

// pop removes the first message, and returns its bytes without room.
func (q *sizes) pop() int64 {
	size := max(0, q.values[q.first])
	if q.first++; q.first == len(q.values) {
		q.values, q.first = q.values[:0], 0
	}
	return size
}
