package inflight

import "time"

// waits bounds how long a connection waits for room, because all of its streams wait with
// the one that needs it: at most the patience at once, and a tenth of the time from then
// on. So refusals one after the other do not hold up the other streams.
type waits struct {
	spent time.Duration // of the patience
	since time.Time     // when spent was true
}

// Of the time, restored is won back: a tenth. Where others share the connection, one wait
// takes at most this part of the patience, too.
const restored = 10

// next is how long the connection may wait now.
func (w *waits) next(patience time.Duration, others int, now time.Time) time.Duration {
	if !w.since.IsZero() {
		w.spent = max(0, w.spent-now.Sub(w.since)/restored)
	}
	w.since = now
	left := max(0, patience-w.spent)
	if others > 0 {
		return min(left, patience/restored)
	}
	return left
}

// took takes note of a wait.
func (w *waits) took(d time.Duration) { w.spent += d }
