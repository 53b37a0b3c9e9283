package check

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// What is taken of an HTTP/2 peer at most.
const (
	maxFrame      = 16 << 10 // bytes, the size that every peer must keep to
	maxFrames     = 10_000   // from one request to the next
	creditEvery   = 32 << 10 // bytes received until the peer may send as many more
	initialWindow = 65_535   // bytes
)

var (
	errNotHTTP2    = errors.New("answer is not HTTP/2")
	errStreamReset = errors.New("the stream was reset") // the connection can go on
	errGoAway      = errors.New("the connection goes away")
	errBroken      = errors.New("the connection is broken") // also where a write timed out
)

// http2Conn is an HTTP/2 connection that carries one request at a time. Who
// asks also reads: a connection that rests costs no goroutine of its own, and
// a deadline that passes amid a frame loses nothing of it.
type http2Conn struct {
	conn    net.Conn
	in      []byte // read; what is before taken was understood
	taken   int
	frames  int // since the latest request
	single  bytes.Reader
	out     bytes.Buffer // written, but not sent
	framer  *http2.Framer
	fields  *hpack.Decoder
	greeted bool // the peer's settings have come
	leaving bool // the peer wants no more requests, or there are no numbers left
	unpaid  int  // bytes received for which the peer has no credit yet

	room  int64 // what the peer takes on the whole connection
	first int64 // what it takes of each stream at first
	frame int   // bytes of its largest frame

	stream http2Stream // the latest
}

func newHTTP2Conn(conn net.Conn) *http2Conn {
	c := &http2Conn{conn: conn, room: initialWindow, first: initialWindow, frame: maxFrame}
	c.framer = http2.NewFramer(&c.out, &c.single)
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(maxFrame)
	c.fields = hpack.NewDecoder(4096, nil)
	c.out.WriteString(http2.ClientPreface)
	c.write(c.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}))
	return c
}

// write takes the error of writing to a buffer, which does not fail.
func (c *http2Conn) write(error) {}

// flush sends what was written.
func (c *http2Conn) flush() error {
	if c.out.Len() == 0 {
		return nil
	}
	_, err := c.conn.Write(c.out.Bytes())
	c.out.Reset()
	if c.out.Cap() > maxFrame {
		c.out = bytes.Buffer{}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// request sends a request with these fields, encoded, and this payload. Head
// tells that the answer has no body whatever its fields say.
func (c *http2Conn) request(fields, payload []byte, head bool) error {
	number := c.stream.number + 2
	if c.stream.number == 0 {
		number = 1
	}
	c.frames, c.leaving = 0, number > 1<<30
	c.stream = http2Stream{number: number, open: true, head: head, room: c.first, unsent: payload, expected: -1}
	part := fields[:min(len(fields), maxFrame)]
	c.write(c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: number, BlockFragment: part, EndHeaders: len(part) == len(fields), EndStream: len(payload) == 0,
	}))
	for fields = fields[len(part):]; len(fields) > 0; fields = fields[len(part):] {
		part = fields[:min(len(fields), maxFrame)]
		c.write(c.framer.WriteContinuation(number, len(part) == len(fields), part))
	}
	c.sendMore()
	return c.flush()
}

// sendMore writes as much of the payload as the peer takes now.
func (c *http2Conn) sendMore() {
	s := &c.stream
	for s.open && len(s.unsent) > 0 {
		n := int(min(c.room, s.room, int64(c.frame), int64(len(s.unsent))))
		if n <= 0 {
			return
		}
		c.write(c.framer.WriteData(s.number, n == len(s.unsent), s.unsent[:n]))
		s.unsent = s.unsent[n:]
		c.room -= int64(n)
		s.room -= int64(n)
	}
}

// cancel gives up the open stream; the connection goes on.
func (c *http2Conn) cancel() error {
	c.stream.open = false
	c.write(c.framer.WriteRSTStream(c.stream.number, http2.ErrCodeCancel))
	if err := c.conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	return c.flush()
}

// next gives what comes next of the answer.
func (c *http2Conn) next() (event, error) {
	for {
		e, err := c.step()
		if err != nil || e.kind != nothing {
			return e, err
		}
	}
}

// idle treats what comes between requests until the connection's deadline or
// its end. A peer that goes away is its end.
func (c *http2Conn) idle() error {
	for {
		if _, err := c.step(); err != nil {
			return err
		}
	}
}

// step takes one frame.
func (c *http2Conn) step() (event, error) {
	f, err := c.read()
	if err != nil {
		return event{}, err
	}
	e, err := c.treat(f)
	if err != nil {
		return event{}, err
	}
	return e, c.flush()
}

// read gives the next frame, which is good until the one after it.
func (c *http2Conn) read() (http2.Frame, error) {
	if c.frames++; c.frames > maxFrames {
		return nil, fmt.Errorf("%w: %d frames", errTooLong, c.frames)
	}
	const header = 9
	for {
		have := c.in[c.taken:]
		if len(have) >= header {
			size := int(have[0])<<16 | int(have[1])<<8 | int(have[2])
			if kind := http2.FrameType(have[3]); size > maxFrame || !c.greeted && kind != http2.FrameSettings {
				return nil, fmt.Errorf("%w: a frame of %d bytes, %s", errNotHTTP2, size, kind)
			}
			if size += header; len(have) >= size {
				c.single.Reset(have[:size])
				c.taken += size
				f, err := c.framer.ReadFrame()
				if err != nil {
					return nil, fmt.Errorf("%w: %w", errNotHTTP2, err)
				}
				return f, nil
			}
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads more. It keeps little memory where little is read.
func (c *http2Conn) fill() error {
	const least = 512
	c.in, c.taken = append(c.in[:0], c.in[c.taken:]...), 0
	if len(c.in) == 0 && cap(c.in) > least {
		c.in = nil
	}
	if len(c.in) == cap(c.in) {
		c.in = append(make([]byte, 0, max(least, 4*len(c.in))), c.in...)
	}
	n, err := c.conn.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	if n > 0 {
		return nil
	}
	return err
}
