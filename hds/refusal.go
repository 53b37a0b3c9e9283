package hds

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"hdsd/internal/caller"
	"hdsd/internal/pace"
	"hdsd/internal/share"
)

// logPace keeps floods out of the log.
type logPace struct{ reports, idle, stuck pace.Pace }

// refuseReport counts and logs a report of far more than the checker is assigned, or a
// first message that is too large, whose checker has no name yet.
func (s *Server) refuseReport(from, checker string, err error) {
	s.metrics.oversize.Inc()
	if more, ok := s.pace.reports.Next(time.Now()); ok {
		s.options.Log.Warn().Str("event", "report_refused").Str("caller", share.Name(from)).Str("checker", checker).Str("reason", status.Convert(err).Message()).Uint64("more", more).
			Msg("a checker sent far more than it is assigned: it is refused, unread")
	}
}

// endedIdle counts and logs a stream that ends because its client says nothing.
func (s *Server) endedIdle(ctx context.Context) {
	s.metrics.idle.Inc()
	if more, ok := s.pace.idle.Next(time.Now()); ok {
		s.options.Log.Warn().Str("event", "stream_idle").Str("caller", share.Name(caller.FromContext(ctx).Key())).Uint64("more", more).
			Msg("a stream for health checks ends: its client has sent nothing")
	}
}

// endedStuck counts and logs a stream that ends because its client does not read.
func (s *Server) endedStuck(one *session) {
	s.metrics.stuck.Inc()
	if more, ok := s.pace.stuck.Next(time.Now()); ok {
		s.options.Log.Warn().Str("event", "stream_stuck").Str("caller", share.Name(one.origin.Key())).Str("node", one.checker.ID).Uint64("more", more).
			Msg("a stream for health checks ends: its client does not read its specifier")
	}
}
