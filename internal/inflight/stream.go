package inflight

import "hdsd/internal/share"

// stream is what of one gRPC stream is in flight. conn.mu guards it.
type stream struct {
	id       uint32
	head     [messageHeadBytes]byte
	have     int           // of head
	left     int           // bytes of the present message that are to come
	parts    int           // that these and the messages after them may come in
	messages sizes         // bytes without room of those that the handler has not done with; the last one is the present
	taken    bool          // the handler has the first of them
	turn     *share.Turn   // room for the only one of them that has room; nil: nobody asks
	room     bool          // that is the present one
	asks     bool          // the present one needs room and has none
	finished bool          // the client has ended its side
	refusal  error         // of the present message
	begun    chan struct{} // closed when a handler begins that gets one message after the other; nil: it has
	over     bool          // the stream has ended on the wire
	after    []func()      // called then

	allowance

	check func(bytes int) error // of the handler; nil: it takes any message

	waits waits
	late  deadline
}

// allowance is what the client of a stream may send.
type allowance struct {
	window int          // bytes that it may still send; negative if it did not know
	kept   int          // bytes that are here without room
	free   int          // how many that may be
	wide   *share.Lease // of a wide window; nil: it has none
	listed bool         // among the conn's debtors
}

// ends reports whether nothing more is awaited of the client.
func (s *stream) ends() bool { return s.over || s.finished || s.refusal != nil }

// owed is how much more the client may send than it knows.
func (s *stream) owed() int {
	target := s.free - s.kept
	if s.room {
		target += s.left
	}
	return target - s.window
}

// take takes the room of the present message: what is here of it is not kept without.
func (s *stream) take() {
	s.room, s.asks = true, false
	s.kept -= int(s.messages.last()) - s.left
	s.messages.setLast(0)
}

// done ends what the handler has done with, if it has anything, and returns what is to be called
// without the lock.
func (s *stream) done() (over []func()) {
	if !s.taken {
		return nil
	}
	s.taken = false
	kept := s.messages.pop()
	if s.kept -= int(kept); kept > 0 {
		return []func(){} // it had no room
	}
	t := s.turn
	s.turn = nil
	return []func(){t.Release}
}

// refused gives why the next message is refused, nil if it is not.
func (s *stream) refused() error {
	if s.messages.len() > 1 {
		return nil // others come first
	}
	return s.refusal
}

// hide changes the head of a message that is refused, of which grpc has a part already. A handler
// of a stream gets an empty message in its place, which stands for the refusal: what it returns
// for an error, grpc would replace. grpc itself refuses that of a unary call, whose handler would
// take it for a request. It reports whether that was possible.
func (s *stream) hide(head []byte, had int) bool {
	if s.begun != nil {
		if had > 1 {
			return false
		}
		head[1-had] = impossible
		return true
	}
	for _, b := range s.head[1:max(1, had)] {
		if b != 0 {
			return false
		}
	}
	clear(head[max(0, 1-had):])
	return true
}

// giveUp ends the wait of the present message. It returns the turn that it waited for, nil if it had
// none yet.
func (s *stream) giveUp() (t *share.Turn) {
	s.asks = false
	if s.waits.present() > 0 {
		t, s.turn = s.turn, nil
		s.waits.end()
	}
	return t
}

// release gives everything back, and returns what is to be called without the lock.
func (s *stream) release() (over []func()) {
	s.over = true
	s.late.stop()
	return append(s.after, s.turn.Release, s.wide.Release)
}

// sizes is a queue of numbers of bytes.
type sizes struct {
	all   []int64
	first int
}

func (q *sizes) len() int { return len(q.all) - q.first }

func (q *sizes) push(size int64) {
	if len(q.all) == cap(q.all) && q.first > len(q.all)/2 { // rather than grow; to move few is not worth it
		q.all, q.first = q.all[:copy(q.all, q.all[q.first:])], 0
	}
	q.all = append(q.all, size)
}

func (q *sizes) last() int64 { return q.all[len(q.all)-1] }

func (q *sizes) setLast(size int64) { q.all[len(q.all)-1] = size }

func (q *sizes) pop() int64 {
	size := q.all[q.first]
	if q.first++; q.first == len(q.all) {
		q.all, q.first = q.all[:0], 0
	}
	return size
}
