package inflight

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/internal/share"
)

// TestEachMessageHasItsTime: one timer serves all messages of a stream.
func TestEachMessageHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late []int
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c := newConn(ours, &Budget{Late: func(_ string, bytes int) { late = append(late, bytes) }}, "a")
		s := &stream{}
		awaits := func(bytes int, sleep time.Duration, want ...int) {
			t.Helper()
			c.mu.Lock()
			s.left = bytes
			c.await(s)
			c.mu.Unlock()
			time.Sleep(sleep)
			synctest.Wait()
			if !slices.Equal(late, want) {
				t.Fatalf("late are messages of %v bytes, want %v", late, want)
			}
		}
		awaits(60<<20, time.Second) // it has 70 s
		awaits(0, 0)
		awaits(4, 9*time.Second) // it has 10 s, which end before that
		awaits(0, 0)
		awaits(5, 9*time.Second) // it has as long again
		awaits(3, 500*time.Millisecond)
		awaits(3, 500*time.Millisecond, 5)
		if _, err := ours.Write([]byte("a")); err == nil {
			t.Error("the connection is open")
		}
	})
}

// TestAnEndedStreamIsNotLate: a stream may end while its message waits for room.
func TestAnEndedStreamIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(nil, &Budget{Late: func(string, int) { t.Error("it is late") }}, "a")
		s := &stream{left: 10}
		c.mu.Lock()
		s.release()
		c.await(s)
		c.mu.Unlock()
		time.Sleep(time.Hour)
	})
}

// TestAStreamKeepsLittleToSpare: while more messages wait, what is done with serves those to
// come. Nothing is kept when none waits.
func TestAStreamKeepsLittleToSpare(t *testing.T) {
	pool := share.NewPool(share.Limit{Total: 1 << 20})
	c := newConn(nil, &Budget{Pool: pool}, "a")
	c.begin(frame{kind: typeHeaders, stream: 1})
	s := c.hold(1)
	const size = 1000 - messageBytes
	message := make([]byte, messageHeadBytes+size)
	copy(message, []byte{0, 0, 0, size >> 8, size & 0xff})
	arrive := func(n int) {
		for range n {
			if used, err := c.try(1, message); used != len(message) || err != nil {
				t.Fatalf("%d bytes were taken: %v", used, err)
			}
		}
	}
	handle := func(n int) {
		for range n {
			if err := c.took(s); err != nil {
				t.Fatal(err)
			}
			c.next(s)
		}
	}
	is := func(what string, want int64) {
		t.Helper()
		if taken := pool.Usage().Taken; taken != want {
			t.Errorf("%s: %d bytes are taken, want %d", what, taken, want)
		}
	}
	arrive(100)
	is("100 wait", 100_000-freeBytes)
	handle(20)
	is("20 are done with", 100_000-freeBytes)
	arrive(10)
	is("10 more have come", 100_000-freeBytes)
	handle(30)
	is("they are more than it keeps", 66_000)
	handle(60)
	is("none waits", 0)
}

// TestASmallMessageNeedsNoLease: most ACKs cost the pool nothing.
func TestASmallMessageNeedsNoLease(t *testing.T) {
	pool := share.NewPool(share.Limit{Total: 1})
	c := newConn(nil, &Budget{Pool: pool}, "a")
	c.begin(frame{kind: typeHeaders, stream: 1})
	s, message := c.hold(1), make([]byte, freeBytes-messageBytes+messageHeadBytes)
	copy(message, []byte{0, 0, 0, (freeBytes - messageBytes) >> 8, (freeBytes - messageBytes) & 0xff})
	for range 10 {
		c.next(s)
		if used, err := c.try(1, message); used != len(message) || err != nil {
			t.Fatalf("%d bytes were taken: %v", used, err)
		}
		if _, err := c.try(1, message); !errors.Is(err, errNoRoom) {
			t.Fatalf("two of them had room: %v", err)
		}
		if err := c.took(s); err != nil {
			t.Fatal(err)
		}
	}
	c.next(s)
	if s.spare != freeBytes {
		t.Errorf("the stream has %d bytes left without a message, want %d", s.spare, freeBytes)
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
		c := newConn(nil, &Budget{Pool: share.NewPool(share.Limit{Total: 1 << 30}), Refused: func(_ string, err error) { refused = err }}, "a")
		c.begin(frame{kind: typeHeaders, stream: 1})
		_, err := c.try(1, binary.BigEndian.AppendUint32([]byte{0}, uint32(test.size)))
		for left := test.size; left > 0 && err == nil; left -= test.part {
			_, err = c.try(1, make([]byte, min(test.part, left)))
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
	message := binary.BigEndian.AppendUint32([]byte{0}, size)
	message = append(message, make([]byte, size)...)
	for part, fine := range map[int]bool{1: false, 16: false, 35: true, len(message): true} {
		c := newConn(nil, &Budget{Pool: share.NewPool(share.Limit{Total: 1 << 30})}, "a")
		c.begin(frame{kind: typeHeaders, stream: 1})
		var err error
		for n := 0; n < 1000 && err == nil; n++ {
			for bytes := range slices.Chunk(message, part) {
				if _, err = c.try(1, bytes); err != nil {
					break
				}
			}
		}
		c.begin(frame{kind: typeReset, stream: 1}) // nothing is late
		if (err == nil) != fine {
			t.Errorf("messages of %d bytes in parts of %d: %v", len(message), part, err)
		}
	}
}
