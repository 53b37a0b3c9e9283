package coordinator

import "time"

// listening tells until when the core only listens: for a report interval after
// a time in which it did nothing, as when the process or its machine was paused.
// What checkers said meanwhile is on its way, and nobody is late who was not
// listened to.
func (c *core) listening(now time.Time) (until time.Time) {
	if !c.awake.IsZero() && now.Sub(c.awake) > longestSleep+c.timing.report {
		c.listens = now.Add(c.timing.report)
	}
	c.awake = now
	return c.listens
}
