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

// Limits for an HTTP/2 peer.
const (
	maxFrame      = 16 << 10 // bytes, the default of HTTP/2
	maxFrames     = 10_000   // from one request to the next
	creditEvery   = 32 << 10 // bytes received before the next WINDOW_UPDATE
	initialWindow = 65_535   // bytes
)

var (
	errNotHTTP2    = errors.New("answer is not HTTP/2")
	errStreamReset = errors.New("the stream was reset") // the connection stays usable
	errGoAway      = errors.New("the connection goes away")
	errBroken      = errors.New("the connection is broken") // also where a write timed out
)

// http2Conn is an HTTP/2 connection that carries one request at a time. The goroutine
// that sends a request also reads. So an idle connection needs no goroutine of its own,
// and a deadline in the middle of a frame loses nothing of it.
type http2Conn struct {
	conn     net.Conn
	input    []byte // read; the consumed part is processed
	consumed int
	frames   int // since the latest request
	single   bytes.Reader
	output   bytes.Buffer // written, not yet sent
	framer   *http2.Framer
	fields   *hpack.Decoder
	greeted  bool // the peer's settings have arrived
	leaving  bool // the peer takes no more requests, or the stream ids are used up
	unpaid   int  // bytes received since the last WINDOW_UPDATE

	room  int64 // send window of the connection
	first int64 // initial send window of a stream
	frame int   // the peer's maximum frame size in bytes

	stream http2Stream // the latest
}

func newHTTP2Conn(conn net.Conn) *http2Conn {
	c := &http2Conn{conn: conn, room: initialWindow, first: initialWindow, frame: maxFrame}
	c.framer = http2.NewFramer(&c.output, &c.single)
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(maxFrame)
	c.fields = hpack.NewDecoder(4096, nil)
	c.output.WriteString(http2.ClientPreface)
	c.write(c.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}))
	return c
}

// write ignores the error of writing to a buffer, which cannot fail.
func (c *http2Conn) write(error) {}

// flush sends the buffer.
func (c *http2Conn) flush() error {
	if c.output.Len() == 0 {
		return nil
	}
	_, err := c.conn.Write(c.output.Bytes())
	c.output.Reset()
	if c.output.Cap() > maxFrame {
		c.output = bytes.Buffer{}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// request sends a request with encoded fields and a payload. If head is set, the
// response has no body, whatever its fields say.
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

// sendMore writes as much of the payload as the windows allow.
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

// cancel cancels the open stream; the connection stays usable.
func (c *http2Conn) cancel() error {
	c.stream.open = false
	c.write(c.framer.WriteRSTStream(c.stream.number, http2.ErrCodeCancel))
	if err := c.conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	return c.flush()
}

// next returns the next event of the response.
func (c *http2Conn) next() (event, error) {
	for {
		e, err := c.step()
		if err != nil || e.kind != noEvent {
			return e, err
		}
	}
}

// idle handles frames between requests until the connection's deadline or its end.
// GOAWAY ends it, too.
func (c *http2Conn) idle() error {
	for {
		if _, err := c.step(); err != nil {
			return err
		}
	}
}

// step handles one frame.
func (c *http2Conn) step() (event, error) {
	f, err := c.read()
	if err != nil {
		return event{}, err
	}
	e, err := c.handle(f)
	if err != nil {
		return event{}, err
	}
	return e, c.flush()
}

// read returns the next frame, which is valid until the one after it.
func (c *http2Conn) read() (http2.Frame, error) {
	if c.frames++; c.frames > maxFrames {
		return nil, fmt.Errorf("%w: %d frames", errTooLong, c.frames)
	}
	const header = 9
	for {
		unread := c.input[c.consumed:]
		if len(unread) >= header {
			size := int(unread[0])<<16 | int(unread[1])<<8 | int(unread[2])
			if kind := http2.FrameType(unread[3]); size > maxFrame || !c.greeted && kind != http2.FrameSettings {
				return nil, fmt.Errorf("%w: a frame of %d bytes, %s", errNotHTTP2, size, kind)
			}
			if size += header; len(unread) >= size {
				c.single.Reset(unread[:size])
				c.consumed += size
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

// fill reads more. It uses little memory if little is read.
func (c *http2Conn) fill() error {
	const minRead = 512
	c.input, c.consumed = append(c.input[:0], c.input[c.consumed:]...), 0
	if len(c.input) == 0 && cap(c.input) > minRead {
		c.input = nil
	}
	if len(c.input) == cap(c.input) {
		c.input = append(make([]byte, 0, max(minRead, 4*len(c.input))), c.input...)
	}
	n, err := c.conn.Read(c.input[len(c.input):cap(c.input)])
	c.input = c.input[:len(c.input)+n]
	if n > 0 {
		return nil
	}
	return err
}
