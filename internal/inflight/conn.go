package inflight

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync"
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
	in     scanner      // owned by the goroutine that reads
	out    scanner      // owned by the one that writes

	// Owned by the goroutine that reads.
	rest    []byte // what was read and has to wait
	patient bool   // the next message that has no room waits for it
	waits   waits
	stands  stands

	mu      sync.Mutex
	streams map[uint32]*stream // open ones
	closed  bool
	writes  writes
}

// A gRPC message has a byte that says whether it is compressed, and its length.
const messageHeadBytes = 5

// messageBytes is what a message takes beside its content, here and in grpc.
const messageBytes = 64

// impossible is the first byte of a length that no limit allows.
const impossible = 0xff

// beginning is how long a refusal waits for the handler of a stream to begin.
const beginning = 200 * time.Millisecond

func newConn(of net.Conn, b *Budget, caller string) *conn {
	return &conn{Conn: of, budget: b, caller: caller, in: scanner{skip: prefaceBytes}, streams: make(map[uint32]*stream)}
}

// RemoteAddr implements net.Conn. It leads from a call to its connection.
func (c *conn) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

type address struct {
	net.Addr
	conn *conn
}

// Read implements net.Conn. Where a message has no room, it passes on what came before
// it, and waits. Small frames become larger ones.
func (c *conn) Read(b []byte) (int, error) {
	n, err := copy(b, c.rest), error(nil)
	c.rest = c.rest[n:]
	if n == 0 {
		n, err = c.Conn.Read(b)
	}
	used, kept, refused := c.in.join(b[:n], c.begin, c.try)
	if errors.Is(refused, errNoRoom) && used == 0 {
		c.patient = true // grpc has all that came before
		used, kept, refused = c.in.join(b[:n], c.begin, c.try)
	}
	switch {
	case refused == nil:
		return kept, err
	case errors.Is(refused, errNoRoom):
		c.rest = append(bytes.Clone(b[used:n]), c.rest...)
		return kept, nil // an error of Read comes again
	default:
		return 0, refused
	}
}

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

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.writes.begin()
	c.mu.Unlock()
	n, err := c.Conn.Write(b)
	c.mu.Lock()
	over := c.writes.end()
	c.mu.Unlock()
	call(over)
	_, _ = c.out.scan(b[:n], c.end, nil) // without data nothing fails
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	over := c.writes.end()
	for _, s := range c.streams {
		over = append(over, s.release()...)
	}
	clear(c.streams)
	c.mu.Unlock()
	call(over)
	c.place.Release()
	return c.Conn.Close()
}

// begin takes note of what the client begins and ends.
func (c *conn) begin(f frame) {
	if f.kind != typeHeaders && f.kind != typeReset {
		return
	}
	var over []func()
	c.mu.Lock()
	switch s := c.streams[f.stream]; {
	case f.kind == typeReset && s != nil:
		if over = s.release(); c.writes.defers(&over) {
			_ = c.Conn.Close() // grpc finds out, and closes c
		}
		delete(c.streams, f.stream)
	case f.kind == typeHeaders && s == nil && !c.closed:
		c.streams[f.stream] = &stream{begun: make(chan struct{}), spare: freeBytes, parts: partsOf(0)}
	}
	c.mu.Unlock()
	call(over)
}

// end takes note of what hdsd ends.
func (c *conn) end(f frame) {
	if f.kind != typeReset && (f.kind != typeHeaders || f.flags&flagEndStream == 0) {
		return
	}
	var over []func()
	c.mu.Lock()
	if s := c.streams[f.stream]; s != nil {
		over = s.release()
		delete(c.streams, f.stream)
	}
	c.mu.Unlock()
	call(over)
}

// errNoRoom says that a message has to wait.
var errNoRoom = errors.New("no room yet")

// try follows the messages of a stream up to one that has no room. If it is to be patient,
// it waits for the room of one message, and refuses it if it gets none.
func (c *conn) try(id uint32, part []byte) (used int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil {
		return len(part), nil // it has ended; grpc drops the rest
	}
	defer c.await(s)
	for used < len(part) {
		if s.left > 0 {
			if err := c.part(s); err != nil {
				return used, err
			}
			n := min(s.left, len(part)-used)
			used += n
			if s.left -= n; s.left == 0 {
				s.due = 0 // it is whole
			}
			continue
		}
		if err := c.part(s); err != nil {
			return used, err
		}
		had := s.have
		head := part[used : used+copy(s.head[had:], part[used:])]
		if s.have += len(head); s.have < messageHeadBytes {
			return len(part), nil
		}
		s.have, s.left = 0, int(binary.BigEndian.Uint32(s.head[1:]))
		if err := c.take(s); errors.Is(err, errNoRoom) {
			s.have, s.left = had, 0
			return used, err
		} else if err != nil && !c.hide(s, head, had) {
			return used, err
		}
		used += len(head)
		s.parts = min(s.parts+partsOfMessage+s.left/leastPart, partsOf(s.left))
	}
	return used, nil
}

// errTooFine says that a message comes in too many parts. Each takes grpc memory beside what is
// in it.
var errTooFine = status.Errorf(codes.ResourceExhausted,
	"a message came in too many parts (%d are allowed, and one more for each %d bytes): send larger frames", partsOf(0), leastPart)

// leastPart is how small the parts of a message may be on average, frames or reads. Those of a
// client that means well have thousands of bytes, unless its path has very small packets.
const leastPart = 128

// part counts a part of a stream's messages, and refuses one too many.
func (c *conn) part(s *stream) error {
	if s.parts--; s.parts >= 0 {
		return nil
	}
	c.budget.refused(c.caller, errTooFine)
	return errTooFine
}

// partsOfMessage is how many parts a message may come in for its length alone.
const partsOfMessage = 4

// partsOf returns how many parts a message may come in at most, and a stream save up for it.
func partsOf(size int) int { return 64 + size/leastPart }

// hide changes the head of a message that was refused, of which grpc has a part already.
// A handler of a stream gets an empty message, which Stream turns into the refusal; it
// asks for nothing after it. grpc itself refuses that of a unary call, whose handler would
// take it for a request. It reports whether that was possible. The caller holds mu, which
// it gives up meanwhile.
func (c *conn) hide(s *stream, head []byte, had int) bool {
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-s.begun:
		for _, b := range s.head[1:max(1, had)] {
			if b != 0 {
				return false
			}
		}
		clear(head[max(0, 1-had):])
		return true
	case <-time.After(beginning):
		if had > 1 {
			return false
		}
		head[1-had] = impossible
		return true
	}
}

// take takes a lease for a message whose head has come. It gives errNoRoom where it would
// have to wait, and is not to. The caller holds mu, which it gives up while it waits.
func (c *conn) take(s *stream) error {
	size := int64(s.left + messageBytes)
	err := c.lease(s)
	switch most := c.budget.Largest; {
	case err != nil:
	case most > 0 && s.left > most:
		if !c.patient {
			return errNoRoom // grpc sees the stream's beginning first
		}
		c.patient = false
		err = status.Errorf(codes.ResourceExhausted, "a message may have up to %d bytes, and one has %d: make it smaller, or raise %s", most, s.left, c.budget.LargestField)
		c.budget.refused(c.caller, err)
	case !c.patient:
		if missing := s.cover(size); missing > 0 && !s.lease.Try(missing) {
			s.spare = size - missing
			return errNoRoom
		}
	default:
		c.patient = false
		err = c.wait(s, size)
	}
	if err != nil {
		s.refusal = err
		return err
	}
	s.messages.push(size)
	return nil
}

// wait waits for room for a message.
func (c *conn) wait(s *stream, size int64) error {
	lease, others, missing := s.lease, len(c.streams)-1, s.cover(size)
	c.mu.Unlock()
	defer c.mu.Lock()
	began := time.Now()
	c.stands.begin(began)
	err := lease.Wait(missing, c.waits.next(c.budget.patience(), others, began))
	c.waits.took(c.stands.end(time.Now()))
	return err
}

// lease takes the lease of a stream, if it has none. When others need its room, the
// connection ends: its caller has most. The caller holds mu.
func (c *conn) lease(s *stream) (err error) {
	switch {
	case s.lease != nil:
	case c.closed:
		return net.ErrClosed
	default:
		s.lease, err = c.budget.Pool.Take(c.caller, 0, func(error) { _ = c.Conn.Close() }) // grpc finds out, and closes c
	}
	return err
}

// follow has a function called when a stream is over; false: it is already.
func (c *conn) follow(id uint32, over func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s != nil {
		s.after = append(s.after, over)
	}
	return s != nil
}

// hold takes note that the handler of a stream has begun, and does not ask for a message yet. It
// returns the stream, nil if that has ended.
func (c *conn) hold(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s != nil {
		close(s.begun)
		s.busy = true
		c.time(s)
	}
	return s
}

// next gives back what the handler has done with, and records that it is about to get another
// message. It is called before the handler asks for one.
func (c *conn) next(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.over {
		return
	}
	if s.taken > 0 && s.messages.len() > 0 {
		s.spare += s.messages.pop()
		s.taken--
	}
	s.giveBack()
	s.busy = false
	c.time(s)
}

// took takes note that the handler has a message. It gives the refusal if that message
// only stands for one that was refused.
func (c *conn) took(s *stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.over:
	case s.refusal != nil && s.taken == s.messages.len():
		return s.refusal
	default:
		s.taken++
		s.busy = true
		c.time(s)
	}
	return nil
}
