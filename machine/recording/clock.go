package recording

import (
	"time"
	"unsafe"
)

// isMonotonic reports whether a time has a monotonic reading.
func isMonotonic(t time.Time) bool { return t != t.Round(0) }

// wallStart is the zero of the wall seconds in a time with a monotonic reading, in Unix seconds.
var wallStart = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// combine returns a time with two readings: elapsed after base by the monotonic clock, and wall by the wall
// clock. It reports false if no such time exists. Package time has no function for this, and both readings
// are needed: they drift apart when the wall clock is set.
func combine(base time.Time, elapsed time.Duration, wall time.Time) (time.Time, bool) {
	t := base.Add(elapsed)
	seconds := wall.Unix() - wallStart
	if !isMonotonic(t) || seconds < 0 || seconds >= 1<<33 {
		return time.Time{}, false
	}
	word := (*uint64)(unsafe.Pointer(&t)) // the first field of a time: 1<<63, seconds<<30, nanoseconds
	*word = 1<<63 | uint64(seconds)<<30 | uint64(wall.Nanosecond())
	return t, t.Equal(wall) && t.Sub(base) == elapsed && isMonotonic(t)
}
