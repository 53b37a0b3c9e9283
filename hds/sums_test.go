package hds

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"google.golang.org/grpc/mem"
)

// cutUp gives bytes in parts of random sizes, as grpc has them.
func cutUp(random *rand.Rand, b []byte) (parts mem.BufferSlice) {
	for len(b) > 0 {
		n := 1 + random.IntN(min(len(b), 2*blockBytes))
		parts, b = append(parts, mem.SliceBuffer(b[:n])), b[n:]
	}
	return parts
}

// TestSumsFindChangedBlocks changes single bytes of messages that come in other parts each
// time, and holds what is said to be unchanged against the bytes.
func TestSumsFindChangedBlocks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	message := make([]byte, 10*blockBytes+17)
	for i := range message {
		message[i] = byte(random.Uint32())
	}
	var s sums
	if s.next(cutUp(random, message), false) {
		t.Fatal("the first message is like another")
	}
	for _, from := range []int{0, 100, 3 * blockBytes, len(message) - 1} {
		s.startAt(from, message)
		if !s.next(cutUp(random, message), true) {
			t.Fatalf("from %d, the same message is another", from)
		}
		for range 200 {
			before := bytes.Clone(message)
			at := random.IntN(len(message))
			message[at]++
			if same := s.next(cutUp(random, message), true); same != (at < from) {
				t.Fatalf("from %d, a change at %d: same is %v", from, at, same)
			}
			begin := random.IntN(len(message))
			end := begin + 1 + random.IntN(len(message)-begin)
			switch block := (at - from) / blockBytes; {
			case s.unchanged(begin, end) && (begin < from || !bytes.Equal(message[begin:end], before[begin:end])):
				t.Fatalf("from %d, a change at %d: %d to %d counts as unchanged", from, at, begin, end)
			case begin >= from && !s.unchanged(begin, end) && (at < from || (begin-from)/blockBytes > block || (end-1-from)/blockBytes < block):
				t.Fatalf("from %d, a change at %d: %d to %d counts as changed", from, at, begin, end)
			}
		}
	}
	if s.next(cutUp(random, message), false) {
		t.Error("a message that cannot be compared is the same")
	}
	if s.unchanged(0, 1) {
		t.Error("a part of it is unchanged")
	}
}

// TestAFlatListIsReadAfterANestedOne has a report without clusters follow one with: what was
// not read before is read now.
func TestAFlatListIsReadAfterANestedOne(t *testing.T) {
	m := newMessage(func() plans { return plans{{size: 1 << 20}} })
	message := bytes.Repeat([]byte{1}, keptBytes+1)
	take := func() bool {
		if err := m.UnmarshalWire(mem.BufferSlice{mem.SliceBuffer(message)}); err != nil || m.refusal != nil {
			t.Fatal(err, m.refusal)
		}
		return m.same
	}
	take()
	m.readFrom(keptBytes)
	m.done(nil)
	message[0]++
	if !take() {
		t.Error("a change of what is not read counts")
	}
	message[keptBytes]++
	if take() {
		t.Error("a change of what is read does not count")
	}
	m.readFrom(0)
	m.done(nil)
	message[0]++
	if take() {
		t.Error("a change of what is read again does not count")
	}
}
