package hds

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/health"
)

// warnPause is the time between two warnings about one contested node id.
const warnPause = 10 * time.Minute

// join makes one the session of its checker, or says why not. If another session
// has the node id, nothing that either says of itself shows which one should have
// it: a checker may come back while its old stream is half open, and two checkers
// may share an id, a host and a load balancer. The one that reports stays, so one
// waits to see whether the other does. Only a grant shows whose an id is.
func (s *Server) join(one *session) error {
	came := s.now()
	timer := stoppedTimer()
	defer timer.Stop()
	for {
		rival, wait, err := s.claim(one, came)
		if rival == nil {
			return err
		}
		timer.Reset(wait)
		select {
		case <-rival.lifetime.done:
		case <-timer.C:
		case <-one.grpc.Context().Done():
			return status.FromContextError(one.grpc.Context().Err()).Err()
		}
	}
}

// claim admits one, refuses it, or gives the session that it has to wait for, and
// for how long. It watches that session for at least one interval.
func (s *Server) claim(one *session, came int64) (rival *session, wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.door.admits(one.checker.ID, &one.origin.Caller); err != nil {
		return nil, 0, s.turnAway(one.checker.ID, &one.origin.Caller, err)
	}
	rival = s.sessions[one.checker.ID]
	if rival == nil || rival.ending || takesBack(one.origin, rival.origin, &one.checker) {
		return nil, 0, s.admit(one)
	}
	interval := int64(s.options.Interval)
	if rival.activity.heard.Load() >= came+interval {
		return nil, 0, s.refuse(one.checker.ID, one.origin.Host(), rival)
	}
	if wait := max(rival.keepsIDUntil(), came+interval) - s.now(); wait > 0 {
		return rival, time.Duration(wait), nil
	}
	return nil, 0, s.admit(one)
}

// takesBack reports whether one has the node id at once, although another session is
// heard: a grant binds it to one's identity, and not to the other's.
func takesBack(one, rival origin, c *health.Checker) bool {
	return one.owns(c) && !rival.owns(c)
}

// refuse gives the error for a checker that claims the node id of a live session,
// and logs it once in a while. The caller holds mu.
func (s *Server) refuse(id, from string, old *session) error {
	s.metrics.refused.Inc()
	if now := time.Now(); now.Sub(old.warned) >= warnPause {
		old.warned = now
		s.options.Log.Warn().Str("event", "checker_id_contested").Str("checker", id).Str("from", from).Str("connected", old.origin.Host()).
			Msg("a checker with the node id of one that reports is refused: give each checker its own node.id")
	}
	return status.Errorf(codes.AlreadyExists,
		"node id %q is taken: a checker at %s has it, and was last heard %s ago; give each checker its own node.id "+
			"(a checker that comes back gets its id when its old stream ends, or says nothing for %s)",
		id, old.origin.Host(), old.activity.silence().Round(time.Millisecond), quietIntervals*s.options.Interval)
}
