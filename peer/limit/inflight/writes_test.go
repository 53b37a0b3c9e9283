package inflight

import (
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"
)

// unread is a connection whose writes wait.
type unread struct {
	net.Conn
	begun, goOn chan struct{}
	closed      bool
}

func (u *unread) Write(b []byte) (int, error) { close(u.begun); <-u.goOn; return len(b), nil }
func (u *unread) Close() error                { u.closed = true; return nil }

// TestAResetStreamIsOverAfterTheWrite: until then, grpc has what it was to send.
func TestAResetStreamIsOverAfterTheWrite(t *testing.T) {
	u := &unread{begun: make(chan struct{}), goOn: make(chan struct{})}
	c := newConn(u, NewBudget(1<<20), "a")
	over := 0
	reset := func(id uint32) {
		c.begin(frame{kind: typeHeaders, stream: id})
		if !c.after(id, func() { over++ }) {
			t.Fatal("an open stream is over")
		}
		c.begin(frame{kind: typeReset, stream: id})
	}
	if reset(1); over != 1 {
		t.Errorf("without a write, %d streams are over", over)
	}
	var writing sync.WaitGroup
	writing.Go(func() { _, _ = c.Write(nil) })
	<-u.begun
	for n := range uint32(mostResets) {
		reset(3 + 2*n)
	}
	if over != 1 || u.closed {
		t.Errorf("while a write waits, %d streams are over, and the connection is closed: %t", over, u.closed)
	}
	if reset(1001); !u.closed {
		t.Errorf("%d streams were reset during a write, and the connection goes on", mostResets+1)
	}
	close(u.goOn)
	writing.Wait()
	if over != mostResets+2 {
		t.Errorf("after the write, %d streams are over", over)
	}
}

// parts is a connection that reads in parts.
type parts struct {
	net.Conn
	left [][]byte
}

func (p *parts) Read(b []byte) (int, error) {
	n := copy(b, p.left[0])
	p.left = p.left[1:]
	return n, nil
}

// TestARefusalIsToldOnce, also where a read begins in the middle of a frame.
func TestARefusalIsToldOnce(t *testing.T) {
	head := func(size int, kind, flags byte) []byte {
		return binary.BigEndian.AppendUint32([]byte{byte(size >> 16), byte(size >> 8), byte(size), kind, flags}, 1)
	}
	in := &parts{left: [][]byte{make([]byte, prefaceBytes), head(0, typeHeaders, 4), append(head(1005, typeData, 0), 0, 0, 0, 1000>>8, 1000&0xff)}}
	for range 1000 {
		in.left = append(in.left, []byte{1})
	}
	told := 0
	b := NewBudget(1 << 30)
	b.Refused, b.Arrival = func(string, error) { told++ }, time.Hour
	c := newConn(in, b, "a")
	for into := make([]byte, 1<<15); len(in.left) > 0; {
		if _, err := c.Read(into); err != nil {
			break
		}
	}
	if told != 1 || len(in.left) == 0 {
		t.Errorf("it was told %d times, and %d parts are left", told, len(in.left))
	}
}
