package hds

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/internal/gate"
	"hdsd/peer"
	"hdsd/peer/access"
)

// session is one stream of a checker, or a run of its fetches.
type session struct {
	// Set before others know of the session.
	server  *Server
	grpc    grpc.ServerStream // nil if it fetches
	calls   chan *call        // its fetches; nil if it has a stream
	v2      bool              // the checker speaks v2
	checker health.Checker
	node    *corev3.Node // as kept
	origin  origin
	before  *session // the replaced session, whose end it waits for

	introduced atomic.Bool // the first message arrived
	oversize   atomic.Bool // a message is too large to read
	refused    atomic.Bool // because of its content or its caller

	lifetime lifetime
	activity activity
	pending  pending
	progress progress
	notifier notifier

	// Guarded by Server.mu.
	replaced, ending bool
	warned           time.Time // time of the last warning that another checker claims the node id
}

func (s *Server) newSession() *session {
	return &session{
		server: s, lifetime: newLifetime(), activity: activity{now: s.now}, pending: newPending(),
		notifier: notifier{sink: s.sink, pause: int64(s.options.Interval / newsPerInterval)},
	}
}

// StreamHealthCheck serves one checker until either side ends it.
func (s *Server) StreamHealthCheck(g grpc.BidiStreamingServer[healthv3.HealthCheckRequestOrEndpointHealthResponse, healthv3.HealthCheckSpecifier]) error {
	return s.serve(g, false)
}

func (s *Server) serve(g grpc.ServerStream, v2 bool) error {
	if !s.gate.Enter() {
		return gate.ErrClosing
	}
	defer s.gate.Leave()
	session := s.newSession()
	session.grpc, session.v2 = g, v2
	s.options.Check(g.Context(), session.checkSize)
	s.gate.Go(session.receive)
	first := newSilenceTimer(session.waited)
	first.Reset(s.options.FirstMessageTimeout)
	defer first.Stop()
	for {
		select {
		case <-session.lifetime.stopped:
			return session.lifetime.cause
		case <-s.gate.Closing():
			return gate.ErrClosing
		case <-g.Context().Done(): // also when its authority is withdrawn
			return status.FromContextError(g.Context().Err()).Err()
		case <-first.C:
			if !session.introduced.Load() && first.expired() {
				s.endedIdle(g.Context())
				return status.Errorf(codes.DeadlineExceeded, "no first message within %s: send health_check_request with node and capability", s.options.FirstMessageTimeout)
			}
		}
	}
}

// receive runs in its own goroutine from the start of the stream to its end: grpc ends the wait
// for the next message when the handler returns.
func (s *session) receive() {
	defer close(s.lifetime.done)
	s.lifetime.stop(s.converse())
}

func (s *session) converse() error {
	intro, err := s.introduction()
	if err != nil {
		return err
	}
	s.checker, s.node = intro.checker, intro.kept
	s.origin = origin{intro.node, peer.FromContext(s.grpc.Context()), access.FromContext(s.grpc.Context())}
	s.checker.Identity = s.origin.Identity
	if err := s.origin.permit.Admit(nodeOf(&s.checker)); err != nil {
		return err
	}
	if err := s.server.join(s); err != nil {
		return err
	}
	defer s.leave()
	s.connect()
	s.server.gate.Go(s.send)
	return s.listen()
}

// introduction receives the first message.
func (s *session) introduction() (introduction, error) {
	first := newMessage(nil)
	if err := s.hearMessage(first); err != nil {
		return introduction{}, endOf(err)
	}
	defer first.done(nil)
	s.introduced.Store(true)
	s.activity.hear()
	if first.refusal != nil {
		s.server.refuseReport(peer.FromContext(s.grpc.Context()).Key(), "", first.refusal)
		return introduction{}, first.refusal
	}
	intro, err := introduce(first.bytes)
	if err != nil {
		return introduction{}, status.Error(codes.InvalidArgument, err.Error())
	}
	return intro, nil
}

// connect tells the sink of the session, after all calls for the one before.
func (s *session) connect() {
	if s.before != nil {
		<-s.before.lifetime.done
		s.before = nil
	}
	s.server.sink.Connected(s.checker)
	s.activity.unblock()
}

// leave ends what connect began.
func (s *session) leave() {
	s.notifier.end()
	s.server.leave(s)
}

func (s *session) listen() error {
	m, r := newMessage(s.progress.sentPlans), &reader{}
	for {
		if err := s.hearMessage(m); err != nil {
			return endOf(err)
		}
		if err := s.hear(m, r); err != nil {
			s.refused.Store(status.Code(err) != codes.Canceled)
			return err
		}
	}
}

// checkSize returns an error if a message of so many bytes exceeds the checker's bound. It runs
// before the message is read.
func (s *session) checkSize(bytes int) error {
	err := checkFirst(bytes)
	if s.introduced.Load() {
		err = s.progress.sentPlans().checkBytes(bytes)
	}
	s.oversize.Store(err != nil)
	return err
}

// hearMessage receives a message.
func (s *session) hearMessage(m *message) error {
	err := s.grpc.RecvMsg(m)
	if err != nil && s.oversize.Load() {
		s.refused.Store(true)
		s.server.refuseReport(peer.FromContext(s.grpc.Context()).Key(), s.checker.ID, err)
	}
	return err
}

// stopped reports whether nothing waits for the session's work.
func (s *session) stopped() bool {
	select {
	case <-s.lifetime.stopped:
		return true
	case <-s.server.gate.Closing():
		return true
	default:
		return s.grpc != nil && s.grpc.Context().Err() != nil
	}
}

// hear handles one report.
func (s *session) hear(m *message, r *reader) error {
	now := s.activity.report()
	if r.repeats(m) && s.notifier.spares(now) {
		s.server.metrics.reports[unchangedReport].Inc()
		return nil
	}
	s.activity.block(now)
	defer s.activity.unblock()
	result, err := s.read(m, r)
	if err != nil {
		return err
	}
	s.server.metrics.count(&result)
	accepted := s.progress.match(m.plans, &result)
	if accepted != nil {
		s.pending.rouse() // a held back specifier may have waited for this
	}
	if s.notifier.reported(now, s.checker.ID, result.votes, accepted, s.progress.follows.Load()) {
		s.server.options.Log.Info().Str("event", "checker_speaks").Str("checker", s.checker.ID).Msg("a silent checker reports again")
	}
	return nil
}

// read returns the content of a report, or the reason why it is refused.
func (s *session) read(m *message, r *reader) (result reading, err error) {
	if err = m.refusal; err == nil {
		result, err = r.read(m, s.stopped)
	}
	m.done(err)
	switch status.Code(err) {
	case codes.OK, codes.Canceled:
		return result, err
	case codes.ResourceExhausted:
		s.server.refuseReport(s.origin.Key(), s.checker.ID, err)
		return result, err
	default:
		return result, status.Error(codes.InvalidArgument, err.Error())
	}
}

// heldUp returns the total time for which hdsd did not read the checker's input, for whatever
// reason.
func (s *session) heldUp() time.Duration {
	return s.activity.heldUp() + s.waited()
}

// waited returns the total time for which the checker's input waited to be read.
func (s *session) waited() time.Duration {
	if s.grpc == nil {
		return 0
	}
	total, _ := s.server.options.Waited(s.grpc.Context())
	return total
}

// keepsIDUntil returns the time until which no other session gets the node id, unless more input
// arrives.
func (s *session) keepsIDUntil() int64 {
	interval := s.server.options.Interval
	if s.grpc != nil {
		if _, present := s.server.options.Waited(s.grpc.Context()); present > 0 {
			return s.server.now() + int64(interval)
		}
	}
	return s.activity.keepsIDUntil(interval)
}

// fallSilent reports that the checker reports nothing of its specifier.
func (s *session) fallSilent() {
	if s.notifier.fallSilent(s.checker.ID, &s.progress.follows) {
		s.server.metrics.silent.Inc()
		s.server.options.Log.Warn().Str("event", "checker_silent").Str("checker", s.checker.ID).Str("version", s.checker.Version).
			Msg("a checker reports nothing of what it was sent: it may have rejected it (look at its hds_delegate.errors)")
	}
}

// endOf returns the error that ends a stream when its peer goes away.
func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// due takes what waits to be sent. One that brings back what the last specifier took away is
// held back until a report follows that: Envoy checks such an endpoint anew, and nobody could
// tell what it found before from what it finds then. If it is held back, due gives for how
// long at most: a checker may never follow.
func (s *session) due(now time.Time) (spec *specifier.Specifier, wait time.Duration) {
	if spec = s.pending.peek(); spec == nil {
		return nil, 0
	}
	wait = s.pending.inForceAt.Add(acceptIntervals * s.server.options.Interval).Sub(now)
	if wait > 0 && s.progress.bringsBack(spec) {
		return nil, wait
	}
	if !s.pending.remove(spec) {
		return nil, 0 // another waits by now, and has woken the sender
	}
	return spec, 0
}

// announce puts the plan of a specifier in force and reports whether it changed
// anything. A message that is sent changes something in any case. The goroutine
// that sends calls it.
func (s *session) announce(spec *specifier.Specifier, sending bool) bool {
	defer s.pending.inForce()
	if !s.progress.announce(spec, s.pending.retell || spec.Retell || sending) {
		return false
	}
	s.pending.retell, s.pending.inForceAt = false, time.Now()
	return true
}

func (s *session) state() State {
	lagging := s.pending.isBehind() // before the plan, which may come into force meanwhile
	state := State{
		Connected: true, Specifier: s.progress.specifier(lagging), Followed: s.progress.accepted.Load() > 0,
		LastReport: s.activity.lastReport(), StrangeReports: s.progress.strange.Load(), Silent: s.notifier.silent.Load(),
	}
	if state.Silent {
		state.Reason = fmt.Sprintf("nothing of what it was sent first was reported within %s: it may have rejected it (look at its hds_delegate.errors)",
			s.server.options.patience())
	}
	return state
}
