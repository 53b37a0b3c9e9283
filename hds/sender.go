package hds

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/hds/specifier"
	"hdsd/internal/wire"
)

// patience is how many intervals a checker has to follow a specifier before
// that is logged.
const patience = 3

// sender sends specifiers on one stream; it belongs to one goroutine.
type sender struct {
	stream  *stream
	box     outbox
	next    *time.Timer // when emptied clusters are to be dropped
	check   *time.Timer // when the specifier should have been accepted
	silence vigil       // for a report
	reports uint64      // how many there were when it was sent
	form    form
}

// send runs in a goroutine of its own from Connected to the end of the stream.
func (st *stream) send() {
	s := sender{stream: st, box: outbox{grace: st.server.options.Interval}, form: form{stream: st}}
	s.next, s.check, s.silence = stoppedTimer(), stoppedTimer(), vigil{Timer: stoppedTimer()}
	defer s.next.Stop()
	defer s.check.Stop()
	defer s.silence.Stop()
	for {
		ok := true
		select {
		case <-st.grpc.Context().Done():
			return
		case <-st.wake:
			if spec := st.take(); spec != nil {
				ok = s.assigned(spec)
			}
		case <-s.next.C:
			ok = s.deliver(nil)
		case <-s.check.C:
			s.complain()
		case <-s.silence.C:
			st.falls()
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

func (s *sender) assigned(spec *specifier.Specifier) bool {
	spec = s.form.of(spec)
	s.box.aim(spec)
	return s.deliver(spec)
}

// deliver sends what is due, if anything. The plan of a new specifier is in
// force before its first byte is on the way: a report may follow it at once.
func (s *sender) deliver(spec *specifier.Specifier) bool {
	encoded, err := s.box.compose(time.Now())
	if err != nil {
		s.stream.stop(status.Error(codes.Internal, err.Error()))
		return false
	}
	changed := spec != nil && s.stream.announce(spec, encoded != nil)
	if encoded != nil {
		s.stream.told.Store(&told{s.box.message, s.box.digest, time.Now()})
		if !s.write(encoded) {
			return false
		}
	}
	if due := s.box.delivered(time.Now()); !due.IsZero() {
		s.next.Reset(time.Until(due))
	}
	if changed {
		s.wait()
	}
	return true
}

// wait starts the clocks of a specifier that changed something, once it is
// written: a peer that is slow to read is not silent yet.
func (s *sender) wait() {
	due := patience * s.stream.server.options.Interval
	s.silence.keep(s.stream.plans.Load().current(), due)
	s.reports = s.stream.reports.Load()
	s.check.Reset(due)
}

// write hands a message to the transport. A peer that does not read holds it
// up for so long only; then the stream ends.
func (s *sender) write(encoded []byte) bool {
	server := s.stream.server
	deadline := time.AfterFunc(server.options.WriteTimeout, func() {
		server.metrics.stuck.Inc()
		s.stream.stop(status.Errorf(codes.DeadlineExceeded, "a specifier was not read within %s", server.options.WriteTimeout))
	})
	defer deadline.Stop()
	message := wire.Bytes(encoded)
	if s.stream.grpc.SendMsg(&message) != nil {
		return false // the receiving goroutine learns why
	}
	server.metrics.sent.Inc()
	return true
}

// complain says that a specifier was not accepted in time; called once for
// each that was sent.
func (s *sender) complain() {
	st := s.stream
	if st.accepted.Load() >= st.plans.Load().current().seq {
		return
	}
	st.server.metrics.unaccepted.Inc()
	if !st.follows.Load() {
		return // falls says it
	}
	st.server.options.Log.Warn().Str("event", "specifier_not_followed").Str("checker", st.checker.ID).
		Str("version", st.checker.Version).Bool("reporting", st.reports.Load() > s.reports).
		Msg("the reports of a checker do not follow its specifier: it may have rejected it (look at its hds_delegate.errors)")
}
