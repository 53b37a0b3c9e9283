package limit

import "time"

const quiet = time.Minute

// Episode is the time from the beginning of a trouble to its end. It decides when to log either:
// the beginning once a minute at most, and later if the trouble lasts; the end if the beginning
// was logged. The zero value is ready to use. One goroutine uses it at a time.
type Episode struct {
	start  time.Time // zero: there is no trouble
	logged time.Time // time of the last logged beginning
	open   bool      // the log has a beginning without an end
}

// Since returns the beginning of the trouble; zero without one.
func (e *Episode) Since() time.Time { return e.start }

// Begin records a trouble since start, and reports whether to log its beginning. A continuing
// trouble keeps its start.
func (e *Episode) Begin(now, start time.Time) bool {
	if e.start.IsZero() {
		e.start = start
	}
	if e.open || !e.logged.IsZero() && now.Sub(e.logged) < quiet {
		return false
	}
	e.logged, e.open = now, true
	return true
}

// End records the end of the trouble, if any. It returns how long the trouble took, and whether
// to log its end.
func (e *Episode) End(now time.Time) (duration time.Duration, ok bool) {
	duration, ok = now.Sub(e.start), e.open
	e.start, e.open = time.Time{}, false
	return duration, ok
}
