package check

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// http2Stream is a request and the received part of its response.
type http2Stream struct {
	number uint32
	open   bool // neither answered nor cancelled
	head   bool
	room   int64  // send window
	unsent []byte // of the payload

	block    []byte // an incomplete header block
	ends     bool   // the block ends the stream
	answered bool   // the final response's fields have arrived
	expected int64  // bytes of the body; -1 for any number
	unpaid   int    // bytes received since the last WINDOW_UPDATE
}

// event is a part of a response.
type event struct {
	kind   eventKind
	status int
	header http.Header
	data   []byte // valid until the next event
	ends   bool   // the last event
}

type eventKind uint8

const (
	noEvent eventKind = iota
	header
	data
	trailer
)

// handle handles a frame.
func (c *http2Conn) handle(f http2.Frame) (event, error) {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return event{}, c.set(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			c.write(c.framer.WritePing(true, f.Data))
		}
	case *http2.WindowUpdateFrame:
		return event{}, c.credit(f)
	case *http2.GoAwayFrame:
		return event{}, c.goAway(f)
	case *http2.RSTStreamFrame:
		if c.isOpen(f) {
			c.stream.open = false
			return event{}, errStreamReset
		}
	case *http2.HeadersFrame:
		if f.StreamID > c.stream.number || f.StreamID%2 == 0 {
			return event{}, fmt.Errorf("%w: fields of stream %d", errNotHTTP2, f.StreamID)
		}
		c.stream.block, c.stream.ends = nil, f.StreamEnded()
		return c.takeFields(f, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.ContinuationFrame:
		return c.takeFields(f, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.DataFrame:
		return c.receive(f)
	case *http2.PushPromiseFrame:
		return event{}, fmt.Errorf("%w: a push", errNotHTTP2)
	}
	return event{}, nil
}

func (c *http2Conn) isOpen(f http2.Frame) bool {
	return c.stream.open && f.Header().StreamID == c.stream.number
}

func (c *http2Conn) set(f *http2.SettingsFrame) error {
	if f.IsAck() && c.greeted {
		return nil
	}
	if c.greeted = !f.IsAck(); !c.greeted {
		return fmt.Errorf("%w: it begins by agreeing", errNotHTTP2)
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return fmt.Errorf("%w: %w", errNotHTTP2, err)
		}
		switch s.ID {
		case http2.SettingInitialWindowSize:
			c.stream.room += int64(s.Val) - c.first
			c.first = int64(s.Val)
		case http2.SettingMaxFrameSize:
			c.frame = min(int(s.Val), maxFrame)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.write(c.framer.WriteSettingsAck())
	c.sendMore()
	return nil
}

func (c *http2Conn) credit(f *http2.WindowUpdateFrame) error {
	room := &c.room
	if f.StreamID != 0 {
		if !c.isOpen(f) {
			return nil
		}
		room = &c.stream.room
	}
	if *room += int64(f.Increment); *room > 1<<31-1 {
		return fmt.Errorf("%w: a window of %d bytes", errNotHTTP2, *room)
	}
	c.sendMore()
	return nil
}

// goAway lets a pending request complete if the peer allows it, as Envoy does.
func (c *http2Conn) goAway(f *http2.GoAwayFrame) error {
	if f.ErrCode == http2.ErrCodeNo && c.stream.open && f.LastStreamID >= c.stream.number {
		c.leaving = true
		return nil
	}
	return fmt.Errorf("%w: %s", errGoAway, f.ErrCode)
}

// takeFields adds a part of a header block.
func (c *http2Conn) takeFields(f http2.Frame, part []byte, complete bool) (event, error) {
	s := &c.stream
	if s.block = append(s.block, part...); len(s.block) > maxHeader {
		return event{}, fmt.Errorf("%w: %d bytes of headers", errTooLong, len(s.block))
	}
	if !complete {
		return event{}, nil
	}
	// Decode the fields of a cancelled stream, too: the compression state depends on
	// them.
	list, err := c.fields.DecodeFull(s.block)
	s.block = nil
	if err != nil {
		return event{}, fmt.Errorf("%w: %w", errNotHTTP2, err)
	}
	if !c.isOpen(f) {
		return event{}, nil
	}
	if s.answered {
		return c.finish(trailer, list)
	}
	return c.finish(header, list)
}

// finish makes an event of a complete header block.
func (c *http2Conn) finish(kind eventKind, list []hpack.HeaderField) (event, error) {
	s := &c.stream
	e := event{kind: kind, ends: s.ends}
	var err error
	if e.status, e.header, err = parseFields(kind, list); err != nil {
		return event{}, err
	}
	switch {
	case kind == trailer && !e.ends:
		return event{}, fmt.Errorf("%w: fields amid the body", errNotHTTP2)
	case kind == header && e.status/100 == 1 && e.status != http.StatusSwitchingProtocols:
		if e.ends {
			return event{}, fmt.Errorf("%w: it ends with status %d", errNotHTTP2, e.status)
		}
		return event{}, nil // the final response follows
	case kind == header:
		s.answered = true
		if length := e.header.Get("Content-Length"); length != "" && !s.head && e.status != http.StatusNoContent && e.status != http.StatusNotModified {
			if s.expected, err = strconv.ParseInt(length, 10, 64); err != nil || s.expected < 0 {
				return event{}, fmt.Errorf("%w: content-length %q", errNotHTTP2, length)
			}
		}
	}
	return e, c.end(e.ends)
}

// parseFields checks fields by the rules of HTTP/2.
func parseFields(kind eventKind, list []hpack.HeaderField) (status int, h http.Header, err error) {
	if len(list) > maxHeaders {
		return 0, nil, fmt.Errorf("%w: %d headers", errTooLong, len(list))
	}
	h = make(http.Header, len(list))
	for _, f := range list {
		if f.Name == ":status" && kind == header && status == 0 && len(h) == 0 {
			if status, err = strconv.Atoi(f.Value); err != nil || status < 100 || len(f.Value) != 3 {
				return 0, nil, fmt.Errorf("%w: status %q", errNotHTTP2, f.Value)
			}
			continue
		}
		if f.Name == "" || !isToken(f.Name) || f.Name != strings.ToLower(f.Name) || strings.ContainsAny(f.Value, "\r\n\x00") {
			return 0, nil, fmt.Errorf("%w: header %q", errNotHTTP2, f.Name)
		}
		h.Add(f.Name, f.Value)
	}
	if kind == header && status == 0 {
		return 0, nil, fmt.Errorf("%w: it has no status", errNotHTTP2)
	}
	return status, h, nil
}

// receive adds a part of the body.
func (c *http2Conn) receive(f *http2.DataFrame) (event, error) {
	size := int(f.Length) // including padding
	if c.unpaid += size; c.unpaid >= creditEvery {
		c.write(c.framer.WriteWindowUpdate(0, uint32(c.unpaid)))
		c.unpaid = 0
	}
	s := &c.stream
	if !c.isOpen(f) {
		return event{}, nil
	}
	if !s.answered {
		return event{}, fmt.Errorf("%w: a body without a header", errNotHTTP2)
	}
	if s.unpaid += size; s.unpaid >= creditEvery && !f.StreamEnded() {
		c.write(c.framer.WriteWindowUpdate(s.number, uint32(s.unpaid)))
		s.unpaid = 0
	}
	if s.expected >= 0 {
		if s.expected -= int64(len(f.Data())); s.expected < 0 {
			return event{}, fmt.Errorf("%w: the body is longer than its header says", errNotHTTP2)
		}
	}
	return event{kind: data, data: f.Data(), ends: f.StreamEnded()}, c.end(f.StreamEnded())
}

// end closes the stream if the response ends.
func (c *http2Conn) end(ends bool) error {
	if !ends {
		return nil
	}
	s := &c.stream
	s.open = false
	if s.expected > 0 {
		return fmt.Errorf("%w: %d bytes of the body are missing", errNotHTTP2, s.expected)
	}
	if len(s.unsent) > 0 { // the peer answered before the end of the request
		c.write(c.framer.WriteRSTStream(s.number, http2.ErrCodeNo))
	}
	return nil
}
