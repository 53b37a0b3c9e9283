package hds

import (
	"sync"
	"time"

	"google.golang.org/grpc/status"
)

// refusalPause is the time between two lines about refused reports.
const refusalPause = time.Second

// throttle keeps a flood out of the log.
type throttle struct {
	mu     sync.Mutex
	last   time.Time
	missed uint64
}

// next reports whether to log now, and how many events were not logged before.
func (t *throttle) next(now time.Time) (missed uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.last.IsZero() && now.Sub(t.last) < refusalPause {
		t.missed++
		return 0, false
	}
	missed, t.missed, t.last = t.missed, 0, now
	return missed, true
}

// refuseReport counts and logs a report of far more than the checker is assigned, or a
// first message that is too large, whose checker has no name yet.
func (s *Server) refuseReport(checker string, err error) {
	s.metrics.oversize.Inc()
	if missed, ok := s.refusals.next(time.Now()); ok {
		s.options.Log.Warn().Str("event", "report_refused").Str("checker", checker).Str("reason", status.Convert(err).Message()).Uint64("more", missed).
			Msg("a checker sent far more than it is assigned: it is refused, unread")
	}
}
