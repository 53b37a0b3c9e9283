package hds

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/health"
)

// warnPause is the time between two warnings about one contested node id.
const warnPause = 10 * time.Minute

// join makes a session that of its checker, or returns the reason why not. If another session
// has the node id, nothing in their messages shows which one should have it: a checker may come
// back while its old stream is half open, and two checkers may share an id, a host and a load
// balancer. The reporting one stays, so the new session waits for reports of the other. Only a
// grant shows the owner of an id.
func (s *Server) join(session *session) error {
	came := s.now()
	timer := stoppedTimer()
	defer timer.Stop()
	for {
		rival, wait, err := s.claim(session, came)
		if rival == nil {
			return err
		}
		timer.Reset(wait)
		select {
		case <-rival.lifetime.done:
		case <-timer.C:
		case <-session.grpc.Context().Done():
			return status.FromContextError(session.grpc.Context().Err()).Err()
		}
	}
}

// claim admits a session, refuses it, or returns the rival to wait for, and the time. It watches
// the rival for at least one interval.
func (s *Server) claim(session *session, came int64) (rival *session, wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.door.admits(session.checker.ID, &session.origin.Caller); err != nil {
		return nil, 0, s.turnAway(session.checker.ID, &session.origin.Caller, err)
	}
	rival = s.sessions[session.checker.ID]
	if rival == nil || rival.ending || takesBack(session.origin, rival.origin, &session.checker) {
		return nil, 0, s.admit(session)
	}
	interval := int64(s.options.Interval)
	if rival.activity.heard.Load() >= came+interval {
		return nil, 0, s.refuse(session.checker.ID, session.origin.Host(), rival)
	}
	if wait := max(rival.keepsIDUntil(), came+interval) - s.now(); wait > 0 {
		return rival, time.Duration(wait), nil
	}
	return nil, 0, s.admit(session)
}

// takesBack reports whether the claimant gets the node id at once, although the rival is active:
// a grant binds it to the claimant's identity, and not to the rival's.
func takesBack(claimant, rival origin, c *health.Checker) bool {
	return claimant.owns(c) && !rival.owns(c)
}

// refuse returns the error for a checker that claims the node id of a live session, and logs it
// once in a while. The caller holds mu.
func (s *Server) refuse(id, address string, old *session) error {
	s.metrics.refused.Inc()
	if now := time.Now(); now.Sub(old.warned) >= warnPause {
		old.warned = now
		s.options.Log.Warn().Str("event", "checker_id_contested").Str("checker", id).Str("from", address).Str("connected", old.origin.Host()).
			Msg("a checker with the node id of one that reports is refused: give each checker its own node.id")
	}
	return status.Errorf(codes.AlreadyExists,
		"node id %q is taken: a checker at %s has it, and was last heard %s ago; give each checker its own node.id "+
			"(a checker that comes back gets its id when its old stream ends, or says nothing for %s)",
		id, old.origin.Host(), old.activity.silence().Round(time.Millisecond), quietIntervals*s.options.Interval)
}
