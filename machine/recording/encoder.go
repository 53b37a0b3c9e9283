package recording

import (
	"slices"
	"time"

	"hdsd/catalog"
	"hdsd/machine"
)

// Piece is a part of a recording, for a Writer.
type Piece struct {
	bytes    []byte
	delivery *catalog.Delivery // follows bytes; may be nil
}

// Encoder encodes the events of a machine, and digests of their effects. A nil Encoder does nothing.
type Encoder struct {
	send  func(Piece) bool  // passes a piece to the Writer; false: the recording has ended
	names map[string]uint64 // numbers of recorded names

	out     output
	now     time.Time     // of the current event
	elapsed time.Duration // from the start to now, by the monotonic clock
	wall    int64         // now by the wall clock, in nanoseconds since 1970
	flushed time.Time     // time of the event with the latest piece
	open    bool          // the current event has not ended
	ended   bool          // the recording has ended
	digest  digest
}

// The encoder sends a piece after an event if the piece is this large or the previous one this old.
const (
	pieceBytes    = 64 << 10
	pieceInterval = time.Second
)

// Begin encodes an event. Call it before the machine handles the event.
func (e *Encoder) Begin(now time.Time, event machine.Event) {
	if e == nil || e.ended {
		return
	}
	e.open = true
	e.out.byte(byte(kindOf(event)))
	e.advance(now)
	e.event(event)
	if d, ok := event.(machine.Delivered); ok {
		escaping := d.Delivery // allocates only here
		e.pass(&escaping)
	}
}

// advance encodes the time from the previous event to now: by the monotonic clock, and the drift of the wall
// clock from it.
func (e *Encoder) advance(now time.Time) {
	elapsed, wall := now.Sub(e.out.base), now.UnixNano()
	e.out.int(int64(elapsed - e.elapsed))
	e.out.int(wall - e.wall - int64(elapsed-e.elapsed))
	e.now, e.elapsed, e.wall = now, elapsed, wall
}

// Effect adds an effect of the event to the digest.
func (e *Encoder) Effect(effect machine.Effect) {
	if e != nil && !e.ended {
		e.digest.add(effect)
	}
}

// End ends an event.
func (e *Encoder) End() {
	if e == nil || e.ended {
		return
	}
	e.open = false
	e.out.uint(e.digest.effects + 1)
	if e.digest.effects > 0 {
		sum := e.digest.sum()
		e.out.bytes = append(e.out.bytes, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
		e.digest.effects = 0
	}
	if len(e.out.bytes) >= pieceBytes || e.now.Sub(e.flushed) >= pieceInterval {
		e.pass(nil)
	}
}

// pass sends the encoded bytes.
func (e *Encoder) pass(d *catalog.Delivery) {
	e.ended = !e.send(Piece{slices.Clone(e.out.bytes), d})
	e.out.bytes, e.flushed = e.out.bytes[:0], e.now
}

// Flush sends the encoded bytes. It reports whether the current event has not ended; then the caller must
// encode no more.
func (e *Encoder) Flush() (open bool) {
	if e == nil || e.ended {
		return false
	}
	if open = e.open; open {
		e.out.uint(0)
	}
	e.pass(nil)
	return open
}
