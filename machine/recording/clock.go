package recording

import (
	"time"
	"unsafe"
)

// isMonotonic reports whether a time has a monotonic reading.
func isMonotonic(t time.Time) bool { return t != t.Round(0) }

// wallStart is when the seconds begin that a time with a monotonic reading counts.
var wallStart = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// withReadings returns the time whose monotonic reading is so long after that of base, and which has the
// wall clock of wall. It reports false if there is no such time. Package time offers no way to make one,
// and a clock that was set between two events has both readings drift apart.
func withReadings(base time.Time, elapsed time.Duration, wall time.Time) (time.Time, bool) {
	t := base.Add(elapsed)
	seconds := wall.Unix() - wallStart
	if !isMonotonic(t) || seconds < 0 || seconds >= 1<<33 {
		return time.Time{}, false
	}
	first := (*uint64)(unsafe.Pointer(&t)) // 1<<63, seconds<<30, nanoseconds
	*first = 1<<63 | uint64(seconds)<<30 | uint64(wall.Nanosecond())
	return t, t.Equal(wall) && t.Sub(base) == elapsed && isMonotonic(t)
}
