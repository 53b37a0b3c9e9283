package inflight

import (
	"encoding/binary"
	"fmt"
	"net"
	"testing"
)

// BenchmarkMessage is what a message that comes, is handled and is answered costs here, with
// as many connections as take turns.
func BenchmarkMessage(b *testing.B) {
	for _, size := range []int{100, 20_000} {
		b.Run(fmt.Sprint(size, " bytes"), func(b *testing.B) { benchmarkMessage(b, size) })
	}
}

func benchmarkMessage(b *testing.B, size int) {
	budget := NewBudget(1 << 30)
	message := dataFrames(size)
	all := make([]*counted, 500)
	for i := range all {
		c := newConn(&endless{data: message}, budget, fmt.Sprint(i))
		c.input.skip = 0
		c.begin(frame{kind: typeHeaders, stream: 1})
		c.begin(frame{kind: typeSettings, flags: flagAck})
		all[i] = &counted{conn: c, stream: c.handle(1, false)}
	}
	answer, into, n := dataFrames(200), make([]byte, 32<<10), 0
	b.ReportAllocs()
	for b.Loop() {
		s := all[n%len(all)]
		n++
		s.conn.next(s.stream)
		s.stream.window = size + firstWindow // the client waits for it
		if read, err := s.conn.Read(into); read != len(message) || err != nil {
			b.Fatal(read, err)
		}
		if err := s.conn.delivered(s.stream); err != nil {
			b.Fatal(err)
		}
		if _, err := s.conn.Write(answer); err != nil {
			b.Fatal(err)
		}
	}
}

// dataFrames is a gRPC message on stream 1.
func dataFrames(size int) (frames []byte) {
	message := binary.BigEndian.AppendUint32([]byte{0}, uint32(size))
	for message = append(message, make([]byte, size)...); len(message) > 0; {
		n := min(len(message), largest)
		frames = append(frames, byte(n>>16), byte(n>>8), byte(n), typeData, 0, 0, 0, 0, 1)
		frames, message = append(frames, message[:n]...), message[n:]
	}
	return frames
}

// endless is a connection that always has the same to read.
type endless struct {
	net.Conn
	data []byte
}

func (e *endless) Read(b []byte) (int, error)  { return copy(b, e.data), nil }
func (e *endless) Write(b []byte) (int, error) { return len(b), nil }
