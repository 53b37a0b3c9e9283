package hds

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"hdsd/peer"
	"hdsd/peer/limit"
)

// logPace keeps floods out of the log.
type logPace struct{ reports, idle, stuck limit.Pace }

// refuseReport counts and logs a report far beyond its assignment, or a first message that is
// too large, whose checker has no name yet.
func (s *Server) refuseReport(address, checker string, err error) {
	s.metrics.oversize.Inc()
	s.pace.reports.Warn(time.Now(), &s.options.Log, "report_refused").Str("caller", limit.Name(address)).Str("checker", checker).Str("reason", status.Convert(err).Message()).
		Msg("a checker sent far more than it is assigned: it is refused, unread")
}

// endedIdle counts and logs a stream that ended because its client sent nothing.
func (s *Server) endedIdle(ctx context.Context) {
	s.metrics.idle.Inc()
	s.pace.idle.Warn(time.Now(), &s.options.Log, "stream_idle").Str("caller", limit.Name(peer.FromContext(ctx).Key())).
		Msg("a stream for health checks ends: its client has sent nothing")
}

// endedStuck counts and logs a stream that ended because its client did not read.
func (s *Server) endedStuck(session *session) {
	s.metrics.stuck.Inc()
	s.pace.stuck.Warn(time.Now(), &s.options.Log, "stream_stuck").Str("caller", limit.Name(session.origin.Key())).Str("node", session.checker.ID).
		Msg("a stream for health checks ends: its client does not read its specifier")
}
