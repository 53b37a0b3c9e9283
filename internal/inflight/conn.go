package inflight

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"hdsd/internal/share"
)

// conn is a connection between grpc and the network. grpc reads in one goroutine and
// writes in one.
type conn struct {
	net.Conn
	budget *Budget
	caller string
	place  *share.Lease // among all connections; nil if nothing bounds them

	reading
	ended atomic.Bool // hdsd itself ends it

	writing sync.Mutex // held for a write; taken before mu
	out     scanner
	ends    []frame // of streams, in the present write
	setting uint16  // the one whose value comes next

	mu      sync.Mutex
	streams map[uint32]*stream // open ones
	known   bool               // the client has acknowledged the settings
	rush    *share.Turn        // room for what came before that
	updates []byte             // frames to be written
	debtors []*stream          // that are owed some of their windows
	closed  bool
	writes  writes
}

// reading is owned by the goroutine that reads.
type reading struct {
	in      scanner
	rest    []byte // what was read and has to wait
	patient bool   // a refusal waits for the handler
	early   int    // bytes that came before the client knew the settings
	broken  error  // the client broke the rules
}

// A gRPC message has a byte that says whether it is compressed, and its length.
const messageHeadBytes = 5

// messageBytes is what a message takes beside its content, here and in grpc.
const messageBytes = 64

// impossible is a byte of a length that no limit allows.
const impossible = 0xff

func newConn(of net.Conn, b *Budget, caller string) *conn {
	c := &conn{Conn: of, budget: b, caller: caller, reading: reading{in: scanner{skip: prefaceBytes}}, streams: make(map[uint32]*stream)}
	c.out.change = c.change
	return c
}

// RemoteAddr implements net.Conn. It leads from a call to its connection.
func (c *conn) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

type address struct {
	net.Addr
	conn *conn
}

// Read implements net.Conn. Small frames become larger ones. Where a message is refused whose
// handler may have yet to begin, it passes on what came before.
func (c *conn) Read(b []byte) (int, error) {
	n, err := copy(b, c.rest), error(nil)
	c.rest = c.rest[n:]
	if n == 0 {
		n, err = c.Conn.Read(b)
	}
	used, kept, failed := c.in.join(b[:n], c.begin, c.follow)
	if errors.Is(failed, errNotBegun) && used == 0 {
		c.patient = true // grpc has all that came before
		used, kept, failed = c.in.join(b[:n], c.begin, c.follow)
		c.patient = false
	}
	c.flush()
	switch failed = errors.Join(c.broken, failed); {
	case failed == nil:
		return kept, err
	case errors.Is(failed, errNotBegun) && c.broken == nil:
		c.rest = append(bytes.Clone(b[used:n]), c.rest...)
		return kept, nil // an error of Read comes again
	default:
		c.ended.Store(true)
		return 0, failed
	}
}

// hangUp ends the connection. grpc finds out, and closes c.
func (c *conn) hangUp() {
	c.ended.Store(true)
	_ = c.Conn.Close()
}

// errNotBegun says that a refusal has to wait for the handler of the stream to begin.
var errNotBegun = errors.New("later")

// beginning is how long it waits: that of a unary call does not begin before its message is there.
const beginning = 200 * time.Millisecond

// ReadOnReady is Read into a buffer of a pool. grpc looks for this method. Without it, grpc
// allocates 32 KiB for each connection that comes.
func (c *conn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	b := pool.Get(size)
	n, err := c.Read(*b)
	if n == 0 {
		pool.Put(b)
		return nil, 0, err
	}
	return b, n, err
}

// Write implements net.Conn. It changes what grpc says of windows.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.writes.begin()
	c.mu.Unlock()
	c.writing.Lock()
	var updates []byte
	if c.out.between() {
		c.mu.Lock()
		updates = c.take()
		c.mu.Unlock()
	}
	c.ends = c.ends[:0]
	_, _ = c.out.scan(b, c.note, nil) // without data nothing fails
	before := len(updates)
	if before > 0 {
		b = append(updates, b...)
	}
	n, err := c.Conn.Write(b)
	n = max(0, n-before)
	c.mu.Lock()
	over := c.writes.end()
	for _, f := range c.ends {
		over = append(over, c.end(f.stream)...)
	}
	c.mu.Unlock()
	c.writing.Unlock()
	call(over)
	c.flush()
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	over := append(c.writes.end(), c.rush.Release)
	for id := range c.streams {
		over = append(over, c.end(id)...)
	}
	c.mu.Unlock()
	call(over)
	c.place.Release()
	return c.Conn.Close()
}

// begin takes note of what the client begins and ends.
func (c *conn) begin(f frame) {
	switch f.kind {
	case typeData:
		c.data(f)
		return
	case typeHeaders, typeReset, typeSettings:
	default:
		return
	}
	var over []func()
	c.mu.Lock()
	switch s := c.streams[f.stream]; {
	case f.kind == typeSettings:
		c.known = c.known || f.flags&flagAck != 0
	case f.kind == typeReset && s != nil:
		if over = c.end(f.stream); c.writes.defers(&over) {
			c.hangUp()
		}
	case f.kind == typeHeaders && s == nil && !c.closed:
		c.streams[f.stream] = &stream{id: f.stream, begun: make(chan struct{}), allowance: allowance{window: firstWindow, free: firstWindow}, parts: partsOf(0)}
	}
	c.mu.Unlock()
	call(over)
}

// end forgets a stream, and returns what is to be called without the lock. The caller holds mu.
func (c *conn) end(id uint32) (over []func()) {
	if s := c.streams[id]; s != nil {
		delete(c.streams, id)
		over = s.release()
		if c.known {
			over = append(over, c.calm())
		}
	}
	return over
}

// note takes note of what hdsd ends.
func (c *conn) note(f frame) {
	if f.kind == typeReset || f.kind == typeHeaders && f.flags&flagEndStream != 0 {
		c.ends = append(c.ends, f)
	}
}

// follow follows the messages of a stream.
func (c *conn) follow(id uint32, part []byte) (used int, err error) {
	var over []func()
	defer func() { call(over) }()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil {
		return len(part), nil // it has ended; grpc drops the rest
	}
	for used < len(part) {
		if s.parts--; s.parts < 0 {
			c.budget.refused(c.caller, errTooFine)
			return used, errTooFine
		}
		if s.left > 0 {
			n := min(s.left, len(part)-used)
			used += n
			s.left -= n
			if !s.room {
				s.kept += n
			}
			if s.left == 0 && s.asks { // the client did not know that it had to wait
				over = append(over, s.giveUp().Release)
			}
			continue
		}
		had := s.have
		head := part[used : used+copy(s.head[had:], part[used:])]
		used += len(head)
		s.room = false
		s.kept += len(head)
		if s.have += len(head); s.have < messageHeadBytes {
			break
		}
		s.asks, s.have, s.left = false, 0, int(binary.BigEndian.Uint32(s.head[1:]))
		if refusal := c.check(s); refusal != nil {
			if !c.begun(s) {
				s.have, s.left, s.kept = had, 0, s.kept-len(head)
				return used - len(head), errNotBegun
			}
			s.refusal = refusal
			c.budget.refused(c.caller, refusal)
			if !s.hide(head, had) {
				return used, refusal
			}
		}
		s.parts = min(s.parts+partsOfMessage+s.left/leastPart, partsOf(s.left))
		size := int64(messageHeadBytes + s.left)
		s.messages.push(size)
		if size > firstWindow && s.refusal == nil {
			c.widen(s)
			s.asks = size > int64(s.free) // so that some of it is to come
		}
		c.ask(s)
	}
	c.settle(s)
	return used, nil
}

// begun reports whether it is known if a stream has a handler that gets one message after the
// other. The caller holds mu, which it gives up meanwhile.
func (c *conn) begun(s *stream) bool {
	if s.begun == nil {
		return true
	} else if !c.patient {
		return false
	}
	begun := s.begun
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-begun:
	case <-time.After(beginning):
	}
	return true
}

// check gives an error if a message is larger than the client can have to say. The caller holds
// mu.
func (c *conn) check(s *stream) error {
	if most := c.budget.Largest; most > 0 && s.left > most {
		return status.Errorf(codes.ResourceExhausted, "a message may have up to %d bytes, and one has %d: make it smaller, or raise %s", most, s.left, c.budget.LargestField)
	}
	if s.check != nil {
		return s.check(s.left)
	}
	return nil
}

// setCheck sets what the handler of a stream takes. The present message may have begun before.
func (c *conn) setCheck(s *stream, check func(bytes int) error) {
	c.mu.Lock()
	s.check = check
	if s.left == 0 || s.refusal != nil {
		c.mu.Unlock()
		return
	}
	s.refusal = c.check(s)
	var t *share.Turn
	if s.refusal != nil {
		s.late.stop()
		t = s.giveUp()
	}
	c.mu.Unlock()
	t.Release()
}

// errTooFine says that a message comes in too many parts. Each takes grpc memory beside what is
// in it.
var errTooFine = status.Errorf(codes.ResourceExhausted,
	"a message came in too many parts (%d are allowed, and one more for each %d bytes): send larger frames", partsOf(0), leastPart)

// leastPart is how small the parts of a message may be on average, frames or reads. Those of a
// client that means well have thousands of bytes, unless its path has very small packets.
const leastPart = 128

// partsOfMessage is how many parts a message may come in for its length alone.
const partsOfMessage = 4

// partsOf returns how many parts a message may come in at most, and a stream save up for it.
func partsOf(size int) int { return 64 + size/leastPart }

// ask asks for room for the present message of a stream, once it has none for one before. The
// caller holds mu.
func (c *conn) ask(s *stream) {
	if !s.asks || s.turn != nil || s.over {
		return
	}
	var free bool
	if s.turn, free = c.budget.Room.Ask(c.caller, s.messages.last()+messageBytes, func(t *share.Turn) { c.granted(s, t) }); free {
		s.take()
	} else {
		s.waits.begin()
	}
}

// granted takes note that a stream has the room that it waited for. Who gave it back does not
// wait for the client to be told.
func (c *conn) granted(s *stream, t *share.Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.over || s.turn != t {
		return
	}
	s.waits.end()
	s.take()
	c.settle(s)
	time.AfterFunc(0, c.flush)
}

// stream returns an open stream, nil if it has ended.
func (c *conn) stream(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// handle takes note that the handler of a stream has begun, which gets one message after the other.
// It returns the stream, nil if that has ended.
func (c *conn) handle(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s != nil {
		close(s.begun)
		s.begun = nil
	}
	return s
}

// after has a function called when a stream is over; false: it is already.
func (c *conn) after(id uint32, over func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s != nil {
		s.after = append(s.after, over)
	}
	return s != nil
}

// next gives back what the handler has done with. It is called before the handler asks for
// another message.
func (c *conn) next(s *stream) {
	c.mu.Lock()
	over := s.done()
	if over != nil && c.known {
		over = append(over, c.calm())
	}
	c.mu.Unlock()
	call(over)
	c.mu.Lock()
	c.ask(s)
	c.settle(s)
	c.mu.Unlock()
	c.flush()
}

// took takes note that the handler has a message. It gives the refusal if that message only
// stands for one that was refused.
func (c *conn) took(s *stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.taken = true
	return s.refused()
}

// refused gives why the next message of a stream is refused, nil if it is not.
func (c *conn) refused(s *stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.refused()
}
