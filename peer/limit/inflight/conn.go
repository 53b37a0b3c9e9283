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

	"hdsd/peer/limit"
)

// conn is a connection between grpc and the network. grpc reads in one goroutine and
// writes in one.
type conn struct {
	net.Conn
	budget *Budget
	caller string
	place  *limit.Lease // among all connections; nil if they are not bounded

	reading
	ended atomic.Bool // hdsd itself ends it

	writing sync.Mutex // held for a write; taken before mu
	output  scanner
	ends    []frame // of streams, in the present write
	setting uint16  // the one whose value follows

	mu           sync.Mutex
	streams      map[uint32]*stream // open ones
	acknowledged bool               // the client has acknowledged the settings
	rush         *limit.Turn        // room for earlier bytes
	updates      []byte             // frames to be written
	debtors      []*stream          // streams with windows to be returned
	closed       bool
	writes       writes

	acknowledgement deadline // of the settings, of a client that has rush
}

// reading is owned by the goroutine that reads.
type reading struct {
	input   scanner
	rest    []byte // bytes read that have to wait
	patient bool   // a refusal waits for the handler
	early   int    // bytes that arrived before the client knew the settings
	broken  error  // the client broke the rules
}

// A gRPC message begins with a byte for its compression, and its length.
const messageHeadBytes = 5

// messageBytes is the size of a message beside its content, here and in grpc.
const messageBytes = 64

// impossible is the first byte of a length above any limit.
const impossible = 0xff

func newConn(raw net.Conn, b *Budget, caller string) *conn {
	c := &conn{Conn: raw, budget: b, caller: caller, reading: reading{input: scanner{skip: prefaceBytes}}, streams: make(map[uint32]*stream)}
	c.output.change = c.change
	return c
}

// RemoteAddr implements net.Conn. It leads from a call to its connection.
func (c *conn) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

type address struct {
	net.Addr
	conn *conn
}

// Read implements net.Conn. Small frames become larger ones. If a message is refused before its
// handler begins, it first passes on earlier bytes.
func (c *conn) Read(b []byte) (int, error) {
	n, err := copy(b, c.rest), error(nil)
	c.rest = c.rest[n:]
	if n == 0 {
		n, err = c.Conn.Read(b)
	}
	used, kept, failed := c.input.join(b[:n], c.begin, c.follow)
	if errors.Is(failed, errNotBegun) && used == 0 {
		c.patient = true // grpc has all earlier bytes
		used, kept, failed = c.input.join(b[:n], c.begin, c.follow)
		c.patient = false
	}
	c.flush()
	switch failed = errors.Join(c.broken, failed); {
	case failed == nil:
		return kept, err
	case errors.Is(failed, errNotBegun) && c.broken == nil:
		c.rest = append(bytes.Clone(b[used:n]), c.rest...)
		return kept, nil // an error of Read recurs
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

// errNotBegun means that a refusal has to wait for the handler of the stream to begin.
var errNotBegun = errors.New("later")

// beginning bounds that wait: the handler of a unary call does not begin before its message has
// arrived.
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

// Write implements net.Conn. It changes grpc's frames for windows.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.writes.begin()
	c.mu.Unlock()
	c.writing.Lock()
	var updates []byte
	if c.output.isBoundary() {
		c.mu.Lock()
		updates = c.drain()
		c.mu.Unlock()
	}
	c.ends = c.ends[:0]
	_, _ = c.output.scan(b, c.note, nil) // without data nothing fails
	before := len(updates)
	if before > 0 {
		b = append(updates, b...)
	}
	n, err := c.Conn.Write(b)
	n = max(0, n-before)
	c.mu.Lock()
	callbacks := c.writes.end()
	for _, f := range c.ends {
		callbacks = append(callbacks, c.end(f.stream)...)
	}
	c.mu.Unlock()
	c.writing.Unlock()
	call(callbacks)
	c.flush()
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	callbacks := append(c.writes.end(), c.calm())
	for id := range c.streams {
		callbacks = append(callbacks, c.end(id)...)
	}
	c.mu.Unlock()
	call(callbacks)
	c.place.Release()
	return c.Conn.Close()
}

// begin records the streams that the client begins and ends.
func (c *conn) begin(f frame) {
	switch f.kind {
	case typeData:
		c.data(f)
		return
	case typeHeaders, typeReset, typeSettings:
	default:
		return
	}
	var callbacks []func()
	c.mu.Lock()
	switch s := c.streams[f.stream]; {
	case f.kind == typeSettings:
		if f.flags&flagAck != 0 {
			callbacks = c.acknowledge()
		}
	case f.kind == typeReset && s != nil:
		if callbacks = c.end(f.stream); c.writes.defers(&callbacks) {
			c.hangUp()
		}
	case f.kind == typeHeaders && s == nil && !c.closed:
		c.streams[f.stream] = &stream{id: f.stream, begun: make(chan struct{}), allowance: allowance{window: firstWindow, free: firstWindow}, parts: partsOf(0)}
	}
	c.mu.Unlock()
	call(callbacks)
}

// acknowledge records that the client knows the settings, and returns the callbacks to run
// without the lock. The caller holds mu.
func (c *conn) acknowledge() (callbacks []func()) {
	c.acknowledged = true
	c.acknowledgement.stop()
	for _, s := range c.streams {
		if s.kept > 0 {
			return nil // next calms it
		}
	}
	return []func(){c.calm()}
}

// end forgets a stream, and returns the callbacks to run without the lock. The caller holds mu.
func (c *conn) end(id uint32) (callbacks []func()) {
	if s := c.streams[id]; s != nil {
		delete(c.streams, id)
		callbacks = s.release()
		if c.acknowledged {
			callbacks = append(callbacks, c.calm())
		}
	}
	return callbacks
}

// note records the streams that hdsd ends.
func (c *conn) note(f frame) {
	if f.kind == typeReset || f.kind == typeHeaders && f.flags&flagEndStream != 0 {
		c.ends = append(c.ends, f)
	}
}

// follow reads the messages of a stream.
func (c *conn) follow(id uint32, part []byte) (used int, err error) {
	var callbacks []func()
	defer func() { call(callbacks) }()
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
			if s.left > 0 {
				continue
			}
			s.late.stop() // here, since the next message may begin in this part
			if s.asks {   // the client did not know that it had to wait
				callbacks = append(callbacks, s.giveUp().Release)
			}
			continue
		}
		before := s.headSize
		head := part[used : used+copy(s.head[before:], part[used:])]
		used += len(head)
		s.room = false
		s.kept += len(head)
		if s.headSize += len(head); s.headSize < messageHeadBytes {
			break
		}
		size := int(binary.BigEndian.Uint32(s.head[1:]))
		s.asks, s.headSize, s.left = false, 0, size
		if refusal := c.check(s, size); refusal != nil {
			if !c.begun(s) {
				s.headSize, s.left, s.kept = before, 0, s.kept-len(head)
				return used - len(head), errNotBegun
			}
			s.refuse(refusal, s.messages.len())
			c.budget.refused(c.caller, refusal)
			if !s.hide(head, before) {
				return used, refusal
			}
		}
		s.parts = min(s.parts+partsOfMessage+size/leastPart, partsOf(size))
		size += messageHeadBytes
		s.messages.push(int64(size))
		if s.refusal == nil && (size > firstWindow || s.messages.len() == manyMessages) {
			c.widen(s)
			s.asks = size > s.free // so that a part of it is still to arrive
		}
		c.ask(s)
	}
	c.settle(s)
	return used, nil
}

// begun reports whether it is known if the handler of a stream gets one message after the other.
// The caller holds mu, which is released meanwhile.
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

// check returns an error if a message exceeds the client's bound. The caller holds mu.
func (c *conn) check(s *stream, size int) error {
	if largest := c.budget.Largest; largest > 0 && size > largest {
		return status.Errorf(codes.ResourceExhausted, "a message may have up to %d bytes, and one has %d: make it smaller, or raise %s", largest, size, c.budget.LargestField)
	}
	if s.check != nil {
		return s.check(size)
	}
	return nil
}

// setCheck sets the handler's check of messages. Some may have begun before, or be here already.
func (c *conn) setCheck(s *stream, check func(bytes int) error) {
	c.mu.Lock()
	s.check = check
	var t *limit.Turn
	var refusal error
	for i := range s.messages.len() {
		if i == 0 && s.delivered || s.refusal != nil {
			continue
		}
		if refusal = c.check(s, s.messages.size(i)); refusal != nil {
			s.refuse(refusal, i)
			s.late.stop()
			t = s.giveUp()
		}
	}
	c.mu.Unlock()
	if t.Release(); refusal != nil {
		c.budget.refused(c.caller, refusal)
	}
}

// errTooFine means that a message arrives in too many parts. Each takes grpc memory beside its
// content.
var errTooFine = status.Errorf(codes.ResourceExhausted,
	"a message came in too many parts (%d are allowed, and one more for each %d bytes): send larger frames", partsOf(0), leastPart)

// leastPart is the least mean size of a message's parts, frames or reads. Those of a
// well-behaved client have thousands of bytes, unless its path has very small packets.
const leastPart = 128

// partsOfMessage is the number of parts allowed for a message's length alone.
const partsOfMessage = 4

// partsOf bounds the parts of a message, and those that a stream saves up.
func partsOf(size int) int { return 64 + size/leastPart }

// ask requests room for the present message of a stream, once the previous one has released its
// room. The caller holds mu.
func (c *conn) ask(s *stream) {
	if !s.asks || s.turn != nil || s.ended {
		return
	}
	var free bool
	if s.turn, free = c.budget.Room.Ask(c.caller, s.messages.last()+messageBytes, func(t *limit.Turn) { c.granted(s, t) }); free {
		s.occupy()
	} else {
		s.waits.begin()
	}
}

// granted records that a stream has the room that it waited for. The goroutine that released it
// does not wait for the client's update.
func (c *conn) granted(s *stream, t *limit.Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.ended || s.turn != t {
		return
	}
	s.waits.end()
	s.occupy()
	c.settle(s)
	time.AfterFunc(0, c.flush)
}

// stream returns an open stream, or nil.
func (c *conn) stream(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// handle records that the handler of a stream has begun, which gets one message after the other,
// or only one: grpc refuses that itself, as that of a unary call. It returns the stream, or nil
// if it has ended.
func (c *conn) handle(id uint32, question bool) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s != nil {
		if close(s.begun); !question {
			s.begun = nil
		}
	}
	return s
}

// after registers a callback for the end of a stream; false: it has ended already.
func (c *conn) after(id uint32, done func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s != nil {
		s.after = append(s.after, done)
	}
	return s != nil
}

// next releases the message that the handler has finished. It is called before the handler asks
// for another one, and returns the reason if that is refused.
func (c *conn) next(s *stream) error {
	c.mu.Lock()
	callbacks := s.done()
	if callbacks != nil && c.acknowledged {
		callbacks = append(callbacks, c.calm())
	}
	c.mu.Unlock()
	call(callbacks)
	c.mu.Lock()
	c.ask(s)
	c.settle(s)
	refusal := s.refused()
	c.mu.Unlock()
	c.flush()
	return refusal
}

// delivered records that the handler has a message. It returns the refusal if that message
// stands for a refused one.
func (c *conn) delivered(s *stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.delivered = true
	return s.refused()
}
