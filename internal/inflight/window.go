package inflight

import (
	"context"
	"encoding/binary"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// firstWindow is how many bytes of a stream may be here without room: what a client may send
// before hdsd asks for it, and what the handler has of that. A stream takes grpc more than that.
const firstWindow = 4 << 10

// wideWindow is the same for a stream that has had a larger message, where there is a wide window
// for it: so the next one of 64 KiB or less needs no answer of hdsd's on its way.
const wideWindow = 64 << 10

// defaultWindow is what a client may send on a connection before it knows hdsd's settings
// (RFC 9113, section 6.9.2).
const defaultWindow = 65_535

var errWindow = status.Error(codes.ResourceExhausted,
	"a client sent more than the windows of HTTP/2 allow (RFC 9113, section 6.9): use one that keeps to them")

// data takes note that the client has used a part of its windows. A client that has just come
// does not know them yet: what it sends until then has room of its own, apart from that of whole
// messages. Nothing else keeps a connection from being read.
func (c *conn) data(f frame) {
	c.mu.Lock()
	known, rushes := c.known, c.rush != nil
	c.mu.Unlock()
	if !known {
		if c.early += f.size; c.early > firstWindow && c.early <= defaultWindow && !rushes {
			c.await()
		}
	}
	tooMuch := c.early > defaultWindow
	c.mu.Lock()
	if s := c.streams[f.stream]; s != nil {
		s.window -= f.size
		s.finished = f.flags&flagEndStream != 0
		tooMuch = tooMuch || f.size > 0 && known && s.window < 0
	}
	c.mu.Unlock()
	if tooMuch && c.broken == nil {
		c.broken = errWindow
		c.budget.refused(c.caller, errWindow)
	}
}

// await waits for room for what a client sends before it knows the settings.
func (c *conn) await() {
	t, err := c.budget.Rush.Wait(context.Background(), c.caller, defaultWindow)
	if err != nil {
		return // that context does not end
	}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.rush = t
	}
	c.mu.Unlock()
	if closed {
		t.Release()
	}
}

// calm gives up the room for what came before the client knew the settings. What it returns is
// to be called without the lock. The caller holds mu.
func (c *conn) calm() func() {
	t := c.rush
	c.rush = nil
	return t.Release
}

// widen gives a stream a wide window for as long as it lasts, since no window can be taken back. The
// caller holds mu.
func (c *conn) widen(s *stream) {
	if s.wide != nil || c.budget.Wide == nil {
		return
	}
	if wide, err := c.budget.Wide.Take(c.caller, wideWindow, nil); err == nil {
		s.wide, s.free = wide, wideWindow
	}
}

// settle lets the client send the rest of a message that has room, and what needs none. It starts
// the time that the rest has. The caller holds mu, and calls flush when it has given that up.
func (c *conn) settle(s *stream) {
	if s.ends() {
		s.late.stop()
		return
	}
	switch more := s.owed(); {
	case more >= s.free/2 || more > 0 && !s.asks && s.window < s.left:
		c.allow(s, more)
	case more >= s.free/4 && !s.listed:
		s.listed = true
		c.debtors = append(c.debtors, s)
	}
	c.time(s)
}

// allow lets the client send more. The caller holds mu.
func (c *conn) allow(s *stream, more int) {
	s.window += more
	c.updates = append(c.updates, 0, 0, 4, typeWindow, 0)
	c.updates = binary.BigEndian.AppendUint32(c.updates, s.id)
	c.updates = binary.BigEndian.AppendUint32(c.updates, uint32(more))
}

// take returns the frames to be written. What is owed to streams that do not wait for it goes with
// them: it is not worth a write of its own. The caller holds mu.
func (c *conn) take() (frames []byte) {
	for _, s := range c.debtors {
		if s.listed = false; !s.ends() && s.owed() > 0 {
			c.allow(s, s.owed())
		}
	}
	c.debtors = c.debtors[:0]
	frames, c.updates = c.updates, nil
	return frames
}

// flush writes what is to be written, between two frames of grpc. Who else writes does so after
// it.
func (c *conn) flush() {
	for {
		c.mu.Lock()
		none := len(c.updates) == 0
		c.mu.Unlock()
		if none || !c.writing.TryLock() {
			return
		}
		var err error
		between := c.out.between()
		if between {
			c.mu.Lock()
			b := c.take()
			c.mu.Unlock()
			if len(b) > 0 {
				_, err = c.Conn.Write(b)
			}
		}
		c.writing.Unlock()
		if err != nil {
			_ = c.Conn.Close() // grpc finds out, and closes c
		}
		if !between || err != nil {
			return // grpc goes on with its frame
		}
	}
}

// change changes what grpc says of the windows of streams. It believes that they are as large as
// can be, and speaks of one only after some hundred MiB.
func (c *conn) change(f frame, offset int, part []byte) {
	for i := range part {
		switch at := offset + i; {
		case f.kind == typeSettings:
			switch at %= settingBytes; {
			case at < 2:
				c.setting = c.setting<<8 | uint16(part[i])
			case c.setting == settingWindow:
				part[i] = byteOf(firstWindow, settingBytes-1-at)
			}
		case f.kind == typeWindow && f.stream != 0:
			if part[i] = byteOf(1, 3-at); at == 3 { // none is not allowed
				c.mu.Lock()
				if s := c.streams[f.stream]; s != nil {
					s.window++
				}
				c.mu.Unlock()
			}
		}
	}
}

// byteOf gives one byte of a number, the last one at 0.
func byteOf(number uint32, place int) byte { return byte(number >> (8 * place)) }
