package inflight

import (
	"context"
	"encoding/binary"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// firstWindow bounds the bytes of a stream received without room: those sent before hdsd grants
// more, and those with the handler. A stream takes grpc more than that.
const firstWindow = 4 << 10

// wideWindow is the same for a stream that has had a larger message, or manyMessages at once, if
// there is a wide window for it: then messages of 64 KiB or less need no answer from hdsd on their way.
const wideWindow = 64 << 10

// manyMessages is the number of messages that wait for the handler of a stream whose client sends
// faster than that takes them: in a narrow window, each dozen of small ones would cost an answer.
const manyMessages = 4

// defaultWindow is the window of a connection before the client knows hdsd's settings (RFC 9113,
// section 6.9.2).
const defaultWindow = 65_535

var errWindow = status.Error(codes.ResourceExhausted,
	"a client sent more than the windows of HTTP/2 allow (RFC 9113, section 6.9): use one that keeps to them")

// data records that the client has used a part of its windows. A new client does not know them
// yet: its first bytes have room of their own, apart from that of whole messages. Nothing else
// keeps a connection from being read.
func (c *conn) data(f frame) {
	c.mu.Lock()
	acknowledged, rushes := c.acknowledged, c.rush != nil
	c.mu.Unlock()
	if !acknowledged {
		if c.early += f.size; c.early > firstWindow && c.early <= defaultWindow && !rushes {
			c.await()
		}
	}
	tooMuch := c.early > defaultWindow
	c.mu.Lock()
	if s := c.streams[f.stream]; s != nil {
		s.window -= f.size
		s.finished = f.flags&flagEndStream != 0
		tooMuch = tooMuch || f.size > 0 && acknowledged && s.window < 0
	}
	c.mu.Unlock()
	if tooMuch && c.broken == nil {
		c.broken = errWindow
		c.budget.refused(c.caller, errWindow)
	}
}

// await waits for room for bytes sent before the client knows the settings.
func (c *conn) await() {
	t, err := c.budget.Rush.Wait(context.Background(), c.caller, defaultWindow)
	if err != nil {
		return // that context does not end
	}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.rush = t
		c.start(&c.acknowledgement, 0)
	}
	c.mu.Unlock()
	if closed {
		t.Release()
	}
}

// calm releases the room for bytes sent before the client knew the settings. It returns a
// callback to run without the lock. The caller holds mu.
func (c *conn) calm() func() {
	t := c.rush
	c.rush = nil
	c.acknowledgement.stop()
	return t.Release
}

// widen returns a stream a wide window for as long as it lasts, since no window can be taken back. The
// caller holds mu.
func (c *conn) widen(s *stream) {
	if s.wide != nil || c.budget.Wide == nil {
		return
	}
	if wide, err := c.budget.Wide.Take(c.caller, wideWindow, nil); err == nil {
		s.wide, s.free = wide, wideWindow
	}
}

// settle lets the client send the rest of a message that has room or needs none. It starts the
// time for the rest. The caller holds mu, and calls flush after releasing it.
func (c *conn) settle(s *stream) {
	if s.ends() {
		s.late.stop()
		return
	}
	switch credit := s.owed(); {
	case credit >= s.free/2 || credit > 0 && !s.asks && s.window < s.left:
		c.allow(s, credit)
	case credit >= s.free/4 && !s.listed:
		s.listed = true
		c.debtors = append(c.debtors, s)
	}
	c.time(s)
}

// allow lets the client send more. The caller holds mu.
func (c *conn) allow(s *stream, credit int) {
	s.window += credit
	c.updates = append(c.updates, 0, 0, 4, typeWindow, 0)
	c.updates = binary.BigEndian.AppendUint32(c.updates, s.id)
	c.updates = binary.BigEndian.AppendUint32(c.updates, uint32(credit))
}

// drain returns the frames to be written. It includes the windows of streams that do not wait
// for them: these are not worth a write of their own. The caller holds mu.
func (c *conn) drain() (frames []byte) {
	for _, s := range c.debtors {
		if s.listed = false; !s.ends() && s.owed() > 0 {
			c.allow(s, s.owed())
		}
	}
	c.debtors = c.debtors[:0]
	frames, c.updates = c.updates, nil
	return frames
}

// flush writes the pending frames, between two frames of grpc. Other writers follow it.
func (c *conn) flush() {
	for {
		c.mu.Lock()
		empty := len(c.updates) == 0
		c.mu.Unlock()
		if empty || !c.writing.TryLock() {
			return
		}
		var err error
		boundary := c.output.isBoundary()
		if boundary {
			c.mu.Lock()
			b := c.drain()
			c.mu.Unlock()
			if len(b) > 0 {
				_, err = c.Conn.Write(b)
			}
		}
		c.writing.Unlock()
		if err != nil {
			_ = c.Conn.Close() // grpc finds out, and closes c
		}
		if !boundary || err != nil {
			return // grpc goes on with its frame
		}
	}
}

// change changes grpc's updates of stream windows. grpc believes that they have the maximum, and
// updates one only after some hundred MiB.
func (c *conn) change(f frame, offset int, part []byte) {
	for i := range part {
		switch position := offset + i; {
		case f.kind == typeSettings:
			switch position %= settingBytes; {
			case position < 2:
				c.setting = c.setting<<8 | uint16(part[i])
			case c.setting == settingWindow:
				part[i] = byteOf(firstWindow, settingBytes-1-position)
			}
		case f.kind == typeWindow && f.stream != 0:
			if part[i] = byteOf(1, 3-position); position == 3 { // none is not allowed
				c.mu.Lock()
				if s := c.streams[f.stream]; s != nil {
					s.window++
				}
				c.mu.Unlock()
			}
		}
	}
}

// byteOf returns one byte of a number, the last one at 0.
func byteOf(number uint32, place int) byte { return byte(number >> (8 * place)) }
