package pace

import "time"

const quiet = time.Minute

// Episode is the time from the beginning of a trouble to its end. It says when to log either: the
// beginning once a minute at most, and later if the trouble lasts; the end if it said to log the
// beginning. The zero value is ready to use. One goroutine uses it at a time.
type Episode struct {
	since  time.Time // zero: there is no trouble
	logged time.Time // when it said last to log a beginning
	open   bool      // the log has a beginning without an end
}

// Since returns when the trouble began; zero without one.
func (e *Episode) Since() time.Time { return e.since }

// Begin takes note of a trouble since some time, and reports whether to log its beginning. A trouble
// that goes on keeps its time.
func (e *Episode) Begin(now, since time.Time) bool {
	if e.since.IsZero() {
		e.since = since
	}
	if e.open || !e.logged.IsZero() && now.Sub(e.logged) < quiet {
		return false
	}
	e.logged, e.open = now, true
	return true
}

// End takes note that there is no trouble. It returns how long the last one took, and whether to log
// its end.
func (e *Episode) End(now time.Time) (duration time.Duration, ok bool) {
	duration, ok = now.Sub(e.since), e.open
	e.since, e.open = time.Time{}, false
	return duration, ok
}
