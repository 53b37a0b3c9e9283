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
	delivery *catalog.Delivery // comes after bytes; nil: nothing does
}

// Encoder writes down the events of a machine, and a digest of their effects. A nil Encoder writes nothing.
type Encoder struct {
	hand  func(Piece) bool
	names map[string]uint64

	out     output
	now     time.Time     // of the present event
	elapsed time.Duration // since the start
	wall    int64         // its wall clock, in nanoseconds since 1970
	flushed time.Time
	inside  bool // the present event has not ended
	over    bool // nobody takes more
	digest  digest
}

// Sizes of pieces.
const (
	pieceBytes = 64 << 10
	pieceEvery = time.Second // at the next event
)

// Begin writes down an event, before the machine handles it at a time.
func (e *Encoder) Begin(now time.Time, event machine.Event) {
	if e == nil || e.over {
		return
	}
	e.inside = true
	e.out.byte(byte(kindOf(event)))
	e.moment(now)
	e.event(event)
	if d, ok := event.(machine.Delivered); ok {
		given := d.Delivery // on the heap only here
		e.pass(&given)
	}
}

// moment writes down a time: how far the monotonic clock has moved, and how much further the other has.
func (e *Encoder) moment(now time.Time) {
	elapsed, wall := now.Sub(e.out.base), now.UnixNano()
	e.out.int(int64(elapsed - e.elapsed))
	e.out.int(wall - e.wall - int64(elapsed-e.elapsed))
	e.now, e.elapsed, e.wall = now, elapsed, wall
}

// Effect adds an effect of the event to the digest.
func (e *Encoder) Effect(effect machine.Effect) {
	if e != nil && !e.over {
		e.digest.add(effect)
	}
}

// End ends an event.
func (e *Encoder) End() {
	if e == nil || e.over {
		return
	}
	e.inside = false
	e.out.uint(e.digest.effects + 1)
	if e.digest.effects > 0 {
		sum := e.digest.sum()
		e.out.bytes = append(e.out.bytes, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
		e.digest.effects = 0
	}
	if len(e.out.bytes) >= pieceBytes || e.now.Sub(e.flushed) >= pieceEvery {
		e.pass(nil)
	}
}

// pass hands on what is written.
func (e *Encoder) pass(d *catalog.Delivery) {
	e.over = !e.hand(Piece{slices.Clone(e.out.bytes), d})
	e.out.bytes, e.flushed = e.out.bytes[:0], e.now
}

// Flush hands on what is written. It reports whether that is within an event, after which nothing may come.
func (e *Encoder) Flush() (within bool) {
	if e == nil || e.over {
		return false
	}
	if within = e.inside; within {
		e.out.uint(0)
	}
	e.pass(nil)
	return within
}
