package inflight

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/peer"
)

// waits bounds how long a connection waits for room, because all of its streams wait with
// the one that needs it: at most the patience at once, and a tenth of the time from then
// on. So refusals one after the other do not hold up the other streams.
type waits struct {
	spent time.Duration // of the patience
	since time.Time     // when spent was true
}

// A connection regains a restored part of the time that passes. Where others share it, one wait
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

// stands is how long a connection has stood still in all. Any goroutine may ask.
type stands struct {
	all   atomic.Int64 // of the waits that are over, in nanoseconds
	since atomic.Int64 // when the present one began, in Unix nanoseconds; 0: there is none
}

func (s *stands) begin(now time.Time) { s.since.Store(now.UnixNano()) }

// end ends the present wait, and returns how long it was.
func (s *stands) end(now time.Time) time.Duration {
	lasted := now.UnixNano() - s.since.Load()
	s.all.Add(lasted)
	s.since.Store(0)
	return time.Duration(lasted)
}

func (s *stands) sum(now time.Time) time.Duration {
	all := s.all.Load()
	if since := s.since.Load(); since != 0 {
		all += now.UnixNano() - since
	}
	return time.Duration(all)
}

// Waited returns for how long hdsd has not read the connection of a call, in all, because its
// messages had no room.
func Waited(ctx context.Context) time.Duration {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(address); ok {
			return a.conn.stands.sum(time.Now())
		}
	}
	return 0
}
