package hds

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/envoy/specifier"
	"hdsd/internal/wire"
)

// acceptIntervals is the number of report intervals after which hdsd logs that a checker does
// not follow a specifier.
const acceptIntervals = 3

// leastPatience is the least time for a checker to follow a specifier. Frequent reports make
// neither a network nor a busy machine faster.
const leastPatience = time.Second

// patience returns the time for a checker to follow a specifier. After that, it is silent.
func (o *Options) patience() time.Duration { return max(acceptIntervals*o.Interval, leastPatience) }

// sender sends specifiers on one stream. It belongs to one goroutine.
type sender struct {
	session   *session
	box       outbox
	dropTimer *time.Timer // fires when emptied clusters are to be dropped
	held      *time.Timer // fires when a held back specifier is to be sent anyway
	check     *time.Timer // fires when the specifier should have been accepted
	silence   silenceTimer
	reports   uint64 // number of reports when it was sent
	form      form
}

// send runs in its own goroutine from Connected to the end of the stream.
func (s *session) send() {
	sender := sender{session: s, box: outbox{grace: s.server.options.Interval}, form: form{session: s}}
	sender.dropTimer, sender.held, sender.check, sender.silence = stoppedTimer(), stoppedTimer(), stoppedTimer(), newSilenceTimer(s.heldUp)
	defer sender.dropTimer.Stop()
	defer sender.held.Stop()
	defer sender.check.Stop()
	defer sender.silence.Stop()
	for {
		ok := true
		select {
		case <-s.grpc.Context().Done():
			return
		case <-s.pending.wake:
			ok = sender.assigned()
		case <-sender.held.C:
			ok = sender.assigned()
		case <-sender.dropTimer.C:
			ok = sender.deliver(nil)
		case <-sender.check.C:
			sender.logUnaccepted()
		case <-sender.silence.C:
			if sender.silence.expired() {
				s.fallSilent()
			}
		}
		if !ok {
			return
		}
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// assigned sends the waiting specifier, unless it is held back.
func (s *sender) assigned() bool {
	spec, wait := s.session.due(time.Now())
	if wait > 0 {
		s.held.Reset(wait)
	}
	if spec == nil {
		return true
	}
	spec = s.form.convert(spec)
	s.box.setTarget(spec)
	return s.deliver(spec)
}

// deliver sends the due message, if any. The plan of a new specifier is in force before its
// first byte is on the way: a report may follow it at once.
func (s *sender) deliver(spec *specifier.Specifier) bool {
	encoded, err := s.box.compose(time.Now())
	if err != nil {
		s.session.lifetime.stop(status.Error(codes.Internal, err.Error()))
		return false
	}
	changed := spec != nil && s.session.announce(spec, encoded != nil)
	if encoded != nil {
		s.session.progress.sent.Store(s.box.last)
		if !s.write(encoded) {
			return false
		}
	}
	if due := s.box.delivered(time.Now()); !due.IsZero() {
		s.dropTimer.Reset(time.Until(due))
	}
	if changed {
		s.wait()
	}
	return true
}

// wait starts the timers of a specifier that changed something. It is written by then: a peer
// that is slow to read is not silent yet.
func (s *sender) wait() {
	due := s.session.server.options.patience()
	s.silence.watch(s.session.progress.sentPlans().current(), due)
	s.reports = s.session.activity.reports.Load()
	s.check.Reset(due)
}

// write passes a message to the transport. If a peer does not read for too long, the stream
// ends.
func (s *sender) write(encoded []byte) bool {
	server := s.session.server
	deadline := time.AfterFunc(server.options.WriteTimeout, func() {
		server.endedStuck(s.session)
		s.session.lifetime.stop(status.Errorf(codes.DeadlineExceeded, "a specifier was not read within %s", server.options.WriteTimeout))
	})
	defer deadline.Stop()
	message := wire.Bytes(encoded)
	if s.session.grpc.SendMsg(&message) != nil {
		return false // the receiving goroutine learns the reason
	}
	server.metrics.sent.Inc()
	return true
}

// logUnaccepted logs that a specifier was not accepted in time, once for each.
func (s *sender) logUnaccepted() {
	session := s.session
	if session.progress.isCurrent() {
		return
	}
	session.server.metrics.unaccepted.Inc()
	if !session.progress.follows.Load() {
		return // fallSilent logs it
	}
	session.server.options.Log.Warn().Str("event", "specifier_not_followed").Str("checker", session.checker.ID).
		Str("version", session.checker.Version).Bool("reporting", session.activity.reports.Load() > s.reports).
		Msg("the reports of a checker do not follow its specifier: it may have rejected it (look at its hds_delegate.errors)")
}
