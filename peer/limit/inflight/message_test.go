package inflight

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// quiet is a connection that takes what is written.
type quiet struct {
	net.Conn
	wrote  bytes.Buffer
	closed bool
}

func (q *quiet) Write(b []byte) (int, error) { return q.wrote.Write(b) }
func (q *quiet) Close() error                { q.closed = true; return nil }

// windows are the updates that were written since, summed up.
func (q *quiet) windows() (sum int) {
	var s scanner
	s.change = func(_ frame, _ int, part []byte) { sum += int(binary.BigEndian.Uint32(part)) }
	_, _ = s.scan(q.wrote.Bytes(), func(frame) {}, nil)
	q.wrote.Reset()
	return sum
}

// opened makes a connection with an open stream, whose client knows the settings.
func opened(b *Budget) (*conn, *stream, *quiet) {
	q := &quiet{}
	c := newConn(q, b, "a")
	c.begin(frame{kind: typeSettings, flags: flagAck})
	c.begin(frame{kind: typeHeaders, stream: 1})
	return c, c.stream(1), q
}

// arrive has bytes of stream 1 come.
func (c *conn) arrive(part []byte) error {
	c.begin(frame{kind: typeData, stream: 1, size: len(part)})
	_, err := c.follow(1, part)
	c.flush()
	return errors.Join(c.broken, err)
}

// headOf begins a message.
func headOf(size int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(size)) }

// handled has the handler take a message, and do with it.
func handled(t *testing.T, c *conn, s *stream) {
	t.Helper()
	if err := c.delivered(s); err != nil {
		t.Fatal(err)
	}
	c.next(s)
}

// TestEachMessageHasItsTime, from when it has room until it is whole.
func TestEachMessageHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late []int
		b := NewBudget(200 << 20)
		b.Late = func(_ string, bytes int) { late = append(late, bytes) }
		c, s, q := opened(b)
		awaits := func(message []byte, sleep time.Duration, want ...int) {
			t.Helper()
			if err := c.arrive(message); err != nil {
				t.Fatal(err)
			}
			time.Sleep(sleep)
			synctest.Wait()
			if !slices.Equal(late, want) {
				t.Fatalf("late are messages of %v bytes, want %v", late, want)
			}
			if s.left == 0 {
				handled(t, c, s)
			}
		}
		awaits(headOf(60<<20), time.Minute) // it has 70 s
		awaits(make([]byte, 60<<20), time.Hour)
		awaits(headOf(10), 9*time.Second) // it has 10 s
		awaits(make([]byte, 10), time.Hour)
		others, _ := b.Room.Ask("other", 100<<20, nil)
		awaits(headOf(20<<20), time.Hour) // it has no room
		others.Release()
		time.Sleep(29 * time.Second)
		awaits(make([]byte, 1000), 2*time.Second, 20<<20)
		if !q.closed {
			t.Error("the connection is open")
		}
	})
}

// TestMessagesThatFollowEachOtherAreNotLate: each part has the end of one and the beginning of the
// next.
func TestMessagesThatFollowEachOtherAreNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1 << 20)
		b.Late = func(string, int) { t.Error("it is late") }
		c, s, _ := opened(b)
		message := append(headOf(1000), make([]byte, 1000)...)
		if err := c.arrive(message[:500]); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			time.Sleep(time.Second)
			if err := c.arrive(slices.Concat(message[500:], message[:500])); err != nil {
				t.Fatal(err)
			}
			handled(t, c, s)
		}
		c.begin(frame{kind: typeReset, stream: 1})
	})
}

// TestAnEndedStreamIsNotLate: a stream may end while its message waits for room, or comes.
func TestAnEndedStreamIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(20_000)
		b.Late = func(string, int) { t.Error("it is late") }
		c, _, _ := opened(b)
		if err := c.arrive(headOf(8000)); err != nil {
			t.Fatal(err)
		}
		waits, s, _ := opened(b)
		if err := waits.arrive(headOf(8000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := s.waits.total(); got != time.Second {
			t.Errorf("it waits for %v", got)
		}
		waits.begin(frame{kind: typeReset, stream: 1})
		c.begin(frame{kind: typeReset, stream: 1})
		time.Sleep(time.Hour)
		if b.Room.Taken() != 0 || b.Room.Waiting().Count != 0 {
			t.Errorf("%d bytes are taken, %+v wait", b.Room.Taken(), b.Room.Waiting())
		}
	})
}

// narrow is a budget without wide windows.
func narrow(bytes int64) *Budget {
	b := NewBudget(bytes)
	b.Wide = nil
	return b
}

// TestAStreamOfManySmallMessagesGetsAWideWindow: it sends faster than its handler takes them. A stream
// whose messages are taken one by one gets none.
func TestAStreamOfManySmallMessagesGetsAWideWindow(t *testing.T) {
	const size = 200
	message := append(headOf(size), make([]byte, size)...)
	for _, fast := range []bool{false, true} {
		b := NewBudget(4 * 8 * wideWindow)
		c, s, _ := opened(b)
		for range 3 * manyMessages {
			if err := c.arrive(message); err != nil {
				t.Fatal(err)
			}
			if !fast {
				handled(t, c, s)
			}
		}
		if wide := b.Wide.Usage().Taken > 0; wide != fast {
			t.Errorf("many at once: %t, a wide window: %t", fast, wide)
		}
		if fast && s.window < wideWindow-len(message)*3*manyMessages {
			t.Errorf("its client may send %d bytes", s.window)
		}
	}
}

// TestWideWindows: a stream that had a large message gets the next ones of up to 64 KiB without an
// answer to each. One caller has no more than half of the wide windows; its other streams, and
// messages that are larger, have room as ever. A stream gives its window back when it ends.
func TestWideWindows(t *testing.T) {
	b := NewBudget(4 * 8 * wideWindow) // wide windows for eight streams
	const size, large = 20_000, 100_000
	message := append(headOf(size), make([]byte, size)...)
	var all []*conn
	for n := range 5 {
		c, s, q := opened(b)
		all = append(all, c)
		if err := c.arrive(message[:messageHeadBytes]); err != nil {
			t.Fatal(err)
		}
		if err := c.arrive(message[messageHeadBytes:]); err != nil {
			t.Fatal(err)
		}
		handled(t, c, s)
		q.windows()
		answers := 0
		for range 12 {
			for _, part := range [][]byte{message[:firstWindow], message[firstWindow:]} {
				if s.window >= len(part) || n == 4 {
					if err := c.arrive(part); err != nil {
						t.Fatalf("stream %d: %v", n, err)
					}
				} else {
					t.Fatalf("stream %d: its window is %d", n, s.window)
				}
				if q.windows() > 0 {
					answers++
				}
			}
			handled(t, c, s)
			if q.windows() > 0 {
				answers++
			}
		}
		if wide := n < 4; wide && answers > 12*size/(wideWindow/2)+1 || !wide && answers < 12 {
			t.Errorf("stream %d: %d answers", n, answers)
		}
	}
	c, s := all[0], all[0].stream(1)
	if err := c.arrive(headOf(large)); err != nil || !s.room || b.Room.Taken() < large {
		t.Errorf("a larger one: %v, %t", err, s.room)
	}
	for _, c := range all {
		_ = c.Close()
	}
	if usage := b.Wide.Usage(); usage.Taken != 0 || b.Room.Taken() != 0 {
		t.Errorf("at the end, %d and %d bytes are taken", usage.Taken, b.Room.Taken())
	}
}

// TestWindows: a client may send as much as its message needs once that has room, and little else.
func TestWindows(t *testing.T) {
	b := narrow(1 << 20)
	c, s, q := opened(b)
	handle := func() {
		handled(t, c, s)
	}
	step := func(what string, message []byte, windows int, taken int64) {
		t.Helper()
		if err := c.arrive(message); err != nil {
			t.Fatal(what, err)
		}
		if got := q.windows(); got != windows || b.Room.Taken() != taken {
			t.Errorf("%s: the client may send %d bytes more, and %d are taken; want %d and %d", what, got, b.Room.Taken(), windows, taken)
		}
	}
	const size = 50_000
	step("a head", headOf(size), size+messageHeadBytes, size+messageHeadBytes+messageBytes)
	step("the rest", make([]byte, size), 0, size+messageHeadBytes+messageBytes)
	step("another head while the handler has the first", headOf(size), 0, size+messageHeadBytes+messageBytes)
	handle()
	if got := q.windows(); got != size+messageHeadBytes {
		t.Errorf("when it has done with that, the client may send %d bytes more", got)
	}
	step("the second", make([]byte, size), 0, size+messageHeadBytes+messageBytes)
	handle()
	for range 20 {
		step("a small one", append(headOf(95), make([]byte, 95)...), 0, 0)
	}
	for n := range 40 {
		if n < 20 {
			handle()
		} else if s.window < firstWindow/2 {
			t.Errorf("the client may send %d bytes when nothing waits", s.window)
		}
	}
	q.windows()
	step("a padded frame", nil, 0, 0)
	c.begin(frame{kind: typeData, stream: 1, size: firstWindow / 2}) // all of it padding
	step("more padding", nil, firstWindow/2+firstWindow-firstWindow/2-s.window, 0)
}

// TestWhoIgnoresTheWindowsIsEnded, but a client that has just come does not know them.
func TestWhoIgnoresTheWindowsIsEnded(t *testing.T) {
	refused := 0
	b := narrow(1 << 20)
	b.Refused = func(string, error) { refused++ }
	c, _, _ := opened(b)
	if err := c.arrive(append(headOf(firstWindow), make([]byte, firstWindow)...)); !errors.Is(err, errWindow) || refused != 1 {
		t.Errorf("more than the window: %v", err)
	}
	_ = c.Close()
	c = newConn(&quiet{}, b, "a")
	c.begin(frame{kind: typeHeaders, stream: 1})
	s := c.stream(1)
	if err := c.arrive(append(headOf(50_000), make([]byte, 50_000)...)); err != nil {
		t.Errorf("before it knows them: %v", err)
	}
	if taken := b.Rush.Taken(); taken != defaultWindow {
		t.Errorf("%d bytes are taken for that", taken)
	}
	c.begin(frame{kind: typeSettings, flags: flagAck})
	handled(t, c, s)
	if rush, room := b.Rush.Taken(), b.Room.Taken(); rush != 0 || room != 0 {
		t.Errorf("afterwards, %d and %d bytes are taken", rush, room)
	}
	if s.window < firstWindow/2 || s.kept != 0 {
		t.Errorf("afterwards, it may send %d bytes, and %d are kept", s.window, s.kept)
	}
	c = newConn(&quiet{}, b, "a")
	c.begin(frame{kind: typeHeaders, stream: 1})
	if err := c.arrive(append(headOf(defaultWindow), make([]byte, defaultWindow)...)); !errors.Is(err, errWindow) {
		t.Errorf("more than anybody may: %v", err)
	}
	_ = c.Close()
	if rush, room := b.Rush.Taken(), b.Room.Taken(); rush != 0 || room != 0 {
		t.Errorf("at the end, %d and %d bytes are taken", rush, room)
	}
}

// TestASmallMessageNeedsNoRoom: most ACKs do not depend on what others have.
func TestASmallMessageNeedsNoRoom(t *testing.T) {
	b := NewBudget(2)
	b.Room.Ask("other", 1, nil)
	c, s, _ := opened(b)
	for range 100 {
		const size = firstWindow - messageHeadBytes
		if err := c.arrive(append(headOf(size), make([]byte, size)...)); err != nil {
			t.Fatal(err)
		}
		handled(t, c, s)
	}
}

// TestAMessageInManyParts: grpc keeps each of them with what it takes, so they may not be too small.
func TestAMessageInManyParts(t *testing.T) {
	for _, test := range []struct {
		size, part int
		fine       bool
	}{
		{10, 1, true}, {64, 1, true}, {100_000, leastPart, true}, {1 << 20, 16 << 10, true},
		{100, 1, false}, {100_000, 1, false}, {100_000, leastPart / 2, false},
	} {
		var refused error
		b := NewBudget(1 << 30)
		b.Refused = func(_ string, err error) { refused = err }
		c, _, _ := opened(b)
		err := c.arrive(headOf(test.size))
		for left := test.size; left > 0 && err == nil; left -= test.part {
			err = c.arrive(make([]byte, min(test.part, left)))
		}
		c.begin(frame{kind: typeReset, stream: 1}) // it is not late
		if (err == nil) != test.fine || !errors.Is(err, refused) {
			t.Errorf("%d bytes in parts of %d: %v, and %v was told", test.size, test.part, err, refused)
		}
	}
}

// TestManyMessagesInManyParts: a stream saves up parts, but not for each of its messages.
func TestManyMessagesInManyParts(t *testing.T) {
	const size = 64
	message := append(headOf(size), make([]byte, size)...)
	for part, fine := range map[int]bool{1: false, 16: false, 35: true, len(message): true} {
		c, s, _ := opened(NewBudget(1 << 30))
		var err error
		for n := 0; n < 1000 && err == nil; n++ {
			for bytes := range slices.Chunk(message, part) {
				if err = c.arrive(bytes); err != nil {
					break
				}
			}
			handled(t, c, s)
		}
		c.begin(frame{kind: typeReset, stream: 1}) // nothing is late
		if (err == nil) != fine {
			t.Errorf("messages of %d bytes in parts of %d: %v", len(message), part, err)
		}
	}
}
