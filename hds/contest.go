package hds

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// quiet is how many intervals a stream has to say nothing for another of its
// node id to take its place.
const quiet = 3

// busy is that hdsd does not read what a stream says, as the sink is told of it.
const busy = -1

// warnPause is how long a contest of one stream goes on without being logged
// again.
const warnPause = 10 * time.Minute

// join makes st the stream of its checker, or tells why not. Where another
// stream has the node id, nothing that either says of itself shows which one is
// to have it: a checker may come back while its old stream is half open, and two
// checkers may share an id, a host and a load balancer. The one that reports stays,
// so st waits until it is seen whether the other one does.
func (s *Server) join(st *stream) error {
	came := s.now()
	timer := stoppedTimer()
	defer timer.Stop()
	for {
		rival, wait, err := s.claim(st, came)
		if rival == nil {
			return err
		}
		timer.Reset(wait)
		select {
		case <-rival.done:
		case <-timer.C:
		case <-st.grpc.Context().Done():
			return status.FromContextError(st.grpc.Context().Err()).Err()
		}
	}
}

// claim seats st, or refuses it, or gives the stream that it has to wait for, and
// for how long. It watches that stream for an interval at least.
func (s *Server) claim(st *stream, came int64) (rival *stream, wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rival = s.streams[st.checker.ID]
	if rival == nil || rival.ending {
		return nil, 0, s.seat(st)
	}
	interval := int64(s.options.Interval)
	if rival.heard.Load() >= came+interval {
		return nil, 0, s.refuse(st.checker.ID, st.origin.host, rival)
	}
	if wait := max(s.staysUntil(rival), came+interval) - s.now(); wait > 0 {
		return rival, time.Duration(wait), nil
	}
	return nil, 0, s.seat(st)
}

// staysUntil is until when nobody else gets the node id of st, if nothing more is
// heard: where hdsd itself was held up, what st says is still to be read.
func (s *Server) staysUntil(st *stream) int64 {
	interval := int64(s.options.Interval)
	free := st.free.Load() // first: what is heard comes before it
	if free == busy {
		return s.now() + interval
	}
	return max(st.heard.Load()+quiet*interval, free+interval)
}

// refuse gives the error for one that claims the node id of a live stream; mu is
// held. It logs the first in a while.
func (s *Server) refuse(id, from string, old *stream) error {
	s.metrics.refused.Inc()
	if now := time.Now(); now.Sub(old.warned) >= warnPause {
		old.warned = now
		s.options.Log.Warn().Str("event", "checker_id_contested").Str("checker", id).Str("from", from).Str("connected", old.origin.host).
			Msg("a checker with the node id of one that reports is refused: give each checker its own node.id")
	}
	return status.Errorf(codes.AlreadyExists,
		"node id %q is taken: a checker at %s has it, and was last heard %s ago; give each checker its own node.id "+
			"(a checker that comes back gets its id when its old stream ends, or says nothing for %s)",
		id, old.origin.host, old.silence().Round(time.Millisecond), quiet*s.options.Interval)
}
