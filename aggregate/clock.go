package aggregate

import (
	"math"
	"time"
)

// tick counts milliseconds since the first time given to the clock.
type tick int64

// clock holds the latest time given to it. It uses the monotonic reading if the times carry
// one, and never goes back.
type clock struct {
	base, now time.Time
	elapsed   time.Duration

	watched  time.Duration // elapsed, but with each pause counted as maxPause at most
	maxPause time.Duration // the longest staleness
}

func (c *clock) advance(now time.Time) {
	if c.base.IsZero() {
		c.base, c.now = now, now
	}
	if d := now.Sub(c.base); d >= c.elapsed {
		c.watched += min(d-c.elapsed, c.maxPause)
		c.elapsed, c.now = d, now
	}
}

// watchedTick returns the first tick of the watched time that is not before now.
func (c *clock) watchedTick() tick { return tickOf(c.watched + time.Millisecond - 1) }

// tick returns the latest tick that has come.
func (c *clock) tick() tick { return tickOf(c.elapsed) }

func tickOf(elapsed time.Duration) tick { return tick(elapsed / time.Millisecond) }

// tickAfter returns the first tick at least d from now.
func (c *clock) tickAfter(d time.Duration) tick { return c.tickFrom(c.elapsed, d) }

// tickFrom returns the first tick at least d after start.
func (c *clock) tickFrom(start, d time.Duration) tick {
	if d > math.MaxInt64/2-start {
		d = math.MaxInt64/2 - start
	}
	return tick((start + d + time.Millisecond - 1) / time.Millisecond)
}

func (c *clock) time(t tick) time.Time { return c.base.Add(time.Duration(t) * time.Millisecond) }

// milliseconds rounds up, and returns at most 49 days.
func milliseconds(d time.Duration) uint32 {
	n := d / time.Millisecond
	if d%time.Millisecond > 0 {
		n++
	}
	return uint32(max(0, min(math.MaxUint32, n)))
}

// fromMilliseconds is the inverse of milliseconds.
func fromMilliseconds(ms uint32) time.Duration { return time.Duration(ms) * time.Millisecond }
