package aggregate

import (
	"math"
	"time"
)

// tick counts milliseconds since the first moment that was told.
type tick int64

// clock remembers the latest moment that was told. It measures by the
// monotonic reading where the times carry one, and never goes back.
type clock struct {
	base, now time.Time
	elapsed   time.Duration

	watched time.Duration // of elapsed, without pauses: what is longer than gap counts as gap
	gap     time.Duration
}

func (c *clock) at(now time.Time) {
	if c.base.IsZero() {
		c.base, c.now = now, now
	}
	if d := now.Sub(c.base); d >= c.elapsed {
		c.watched += min(d-c.elapsed, c.gap)
		c.elapsed, c.now = d, now
	}
}

// watchedTick is the first tick of the time watched that comes no sooner than now.
func (c *clock) watchedTick() tick { return tickOf(c.watched + time.Millisecond - 1) }

// tick is the last tick that has come.
func (c *clock) tick() tick { return tickOf(c.elapsed) }

func tickOf(elapsed time.Duration) tick { return tick(elapsed / time.Millisecond) }

// in is the first tick that comes no sooner than d after the moment from.
func (c *clock) in(from, d time.Duration) tick {
	if d > math.MaxInt64/2-from {
		d = math.MaxInt64/2 - from
	}
	return tick((from + d + time.Millisecond - 1) / time.Millisecond)
}

func (c *clock) time(t tick) time.Time { return c.base.Add(time.Duration(t) * time.Millisecond) }

// milliseconds rounds up, and stops at 49 days.
func milliseconds(d time.Duration) uint32 {
	n := d / time.Millisecond
	if d%time.Millisecond > 0 {
		n++
	}
	return uint32(max(0, min(math.MaxUint32, n)))
}
