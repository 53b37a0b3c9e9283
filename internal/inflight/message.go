package inflight

import (
	"time"

	"hdsd/internal/share"
)

// stream is what of one gRPC stream is in flight.
type stream struct {
	// Owned by the goroutine that reads.
	head  [messageHeadBytes]byte
	have  int // of head
	left  int // bytes of the present message that are to come
	parts int // that these and the messages after them may come in

	// Guarded by conn.mu.
	lease    *share.Lease
	messages sizes         // those that the handler has not done with
	spare    int64         // what the lease and freeBytes have beyond them
	taken    int           // how many of them the handler has
	refusal  error         // of the message after these
	busy     bool          // the handler does not ask for a message
	begun    chan struct{} // closed when a handler has begun that gets one message after the other
	missing  int           // bytes of the present message, as far as it is awaited
	over     bool          // nothing is awaited any more
	after    []func()      // called when the stream is over on the wire

	due     time.Duration // when the present message is late; 0 while the handler does not wait for it
	allowed time.Duration // what it had until then
	size    int           // how much of it was missing
	late    *time.Timer   // nil until it is needed
	ends    time.Duration // when late ends; 0: it has
}

// spareBytes is how much a stream keeps of what it has done with while more of its messages
// wait: they take it again. To ask the pool for each small message would cost more than
// to read it.
const spareBytes = 32 << 10

// freeBytes is how much a stream has without a lease: its goroutines take more. Most ACKs need
// no lease then.
const freeBytes = 512

// giveBack gives back what the stream does not need. The caller holds conn.mu.
func (s *stream) giveBack() {
	more := s.spare - freeBytes
	if more <= 0 || more < spareBytes && s.messages.len() > 0 {
		return
	}
	_ = s.lease.Add(-more) // to give back is not refused; an ended lease has nothing
	s.spare = freeBytes
}

// cover uses up what the stream has to spare for a message, and returns how many bytes are
// missing. The caller holds conn.mu.
func (s *stream) cover(size int64) (missing int64) {
	used := min(s.spare, size)
	s.spare -= used
	return size - used
}

// release gives everything back, and returns what is to be called without the lock. The caller
// holds conn.mu.
func (s *stream) release() (after []func()) {
	s.over, s.due = true, 0
	if s.late != nil {
		s.late.Stop()
	}
	s.lease.Release()
	return s.after
}

// sizes is a queue of the sizes of messages.
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

func (q *sizes) pop() int64 {
	size := q.all[q.first]
	if q.first++; q.first == len(q.all) {
		q.all, q.first = q.all[:0], 0
	}
	return size
}

// began is when the process began; times count from there. To read only the monotonic clock
// is quicker.
var began = time.Now()

// await takes note of how much of the present message is missing. The caller holds mu.
func (c *conn) await(s *stream) {
	s.missing = s.left
	if s.refusal != nil {
		s.missing = 0 // nobody waits for it
	}
	c.time(s)
}

// time starts or stops the time that the rest of a message has. It does not count while
// the handler does not ask, or gets a message that came before: grpc lets the sender wait
// then. The timer goes on meanwhile: to stop it for each message would cost more. The
// caller holds mu.
func (c *conn) time(s *stream) {
	whole := s.messages.len() - 1 // the last one is not
	switch wanted := s.missing > 0 && !s.busy && s.taken >= whole && !s.over; {
	case !wanted:
		s.due = 0
	case s.due == 0:
		c.start(s)
	}
}

// start starts that time. The caller holds mu.
func (c *conn) start(s *stream) {
	s.size, s.allowed = s.missing, c.budget.arrival(s.missing)
	s.due = time.Since(began) + s.allowed
	switch {
	case s.late == nil:
		s.late = time.AfterFunc(s.allowed, func() { c.look(s) })
	case s.ends == 0 || s.due < s.ends:
		s.late.Reset(s.allowed)
	default:
		return
	}
	s.ends = s.due
}

// look ends the connection if a message is late.
func (c *conn) look(s *stream) {
	c.mu.Lock()
	s.ends = 0
	over := time.Since(began) - s.due
	switch {
	case s.due == 0: // nothing is awaited
		c.mu.Unlock()
		return
	case over < 0: // another message than when the timer began
		s.late.Reset(-over)
		s.ends = s.due
		c.mu.Unlock()
		return
	case over > s.allowed/2: // hdsd itself stood still
		c.start(s)
		c.mu.Unlock()
		return
	}
	size := s.size
	c.mu.Unlock()
	if c.budget.Late != nil {
		c.budget.Late(c.caller, size)
	}
	_ = c.Conn.Close() // grpc finds out, and closes c
}
