package hds

import (
	"context"
	"errors"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/hds/specifier"
	"hdsd/internal/gate"
)

// fetchIntervals is how many report intervals a checker stays connected after a
// fetch.
const fetchIntervals = 3

// errLapsed is for a fetch that comes just as the session ends.
var errLapsed = errors.New("no fetch for three intervals")

// call is a fetch on its way to the goroutine that answers it.
type call struct {
	ctx      context.Context
	isReport bool
	report   []byte

	// Set when done is closed.
	done chan struct{}
	spec *healthv3.HealthCheckSpecifier
	err  error
}

// fetch hands c to the goroutine that answers it, and waits.
func (s *session) fetch(ctx context.Context, c *call) (*healthv3.HealthCheckSpecifier, error) {
	c.done = make(chan struct{})
	select {
	case s.calls <- c:
	case <-s.lifetime.done:
		return nil, s.whyDone()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	select {
	case <-c.done:
		return c.spec, c.err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// whyDone gives what ended the session; errLapsed if nothing did.
func (s *session) whyDone() error {
	select {
	case <-s.lifetime.stopped:
		return s.lifetime.cause
	case <-s.server.gate.Closing():
		return gate.ErrClosing
	default:
		return errLapsed
	}
}

// fetcher answers the fetches of one checker. It belongs to one goroutine.
type fetcher struct {
	session *session
	box     outbox
	form    form
	in      *message
	reader  reader
	waited  bool        // for the first assignment
	expiry  *time.Timer // when the session ends
	silence silenceTimer
}

// answerFetches runs in a goroutine of its own from the first fetch until there is
// none for three intervals, another session takes its place or the server closes.
func (s *session) answerFetches() {
	defer close(s.lifetime.done)
	defer s.leave()
	interval := s.server.options.Interval
	f := fetcher{session: s, box: outbox{grace: interval}, form: form{session: s}, in: newMessage(s.progress.sentPlans)}
	f.expiry, f.silence = stoppedTimer(), newSilenceTimer(s.heldUp)
	defer f.expiry.Stop()
	defer f.silence.Stop()
	s.connect()
	f.expiry.Reset(fetchIntervals * interval)
	for {
		select {
		case <-s.lifetime.stopped:
			return
		case <-s.server.gate.Closing():
			return
		case <-f.expiry.C:
			return
		case <-f.silence.C:
			if f.silence.over() {
				s.fallSilent()
			}
		case c := <-s.calls:
			c.spec, c.err = f.answer(c)
			close(c.done)
			f.expiry.Reset(fetchIntervals * interval)
		}
	}
}

func (f *fetcher) answer(c *call) (*healthv3.HealthCheckSpecifier, error) {
	s := f.session
	s.activity.hear()
	if c.isReport {
		if err := f.in.UnmarshalWire(mem.BufferSlice{mem.SliceBuffer(c.report)}); err != nil {
			return nil, err
		}
		if err := s.hear(f.in, &f.reader); err != nil {
			return nil, err
		}
	}
	if spec := f.assigned(c.ctx); spec != nil {
		spec = f.form.of(spec)
		f.box.setTarget(spec)
		return f.compose(spec)
	}
	if f.box.target == nil {
		if err := s.whyDone(); !errors.Is(err, errLapsed) {
			return nil, err
		}
		return &healthv3.HealthCheckSpecifier{Interval: durationpb.New(s.server.options.Interval)}, nil
	}
	if len(f.box.leaving) > 0 {
		return f.compose(nil)
	}
	return f.box.last.message(), nil
}

// assigned gives what was assigned since the last fetch. The first fetch waits
// for it, but not for long.
func (f *fetcher) assigned(ctx context.Context) *specifier.Specifier {
	s := f.session
	if spec, _ := s.due(time.Now()); spec != nil || f.waited {
		f.waited = true
		return spec
	}
	f.waited = true
	limit := time.NewTimer(s.server.options.AssignTimeout)
	defer limit.Stop()
	for {
		select {
		case <-s.pending.wake: // perhaps for what was withdrawn
			if spec, _ := s.due(time.Now()); spec != nil {
				return spec
			}
		case <-limit.C:
			return nil
		case <-ctx.Done():
			f.waited = false
			return nil
		case <-s.lifetime.stopped:
			return nil
		case <-s.server.gate.Closing():
			return nil
		}
	}
}

// compose gives the message that is due, and counts it as sent where it is not
// the one before. Of a new specifier the plan is in force from now on.
func (f *fetcher) compose(spec *specifier.Specifier) (*healthv3.HealthCheckSpecifier, error) {
	s := f.session
	encoded, err := f.box.compose(time.Now())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if spec != nil && s.announce(spec, encoded != nil) {
		f.silence.watch(s.progress.sentPlans().current(), s.server.options.patience())
	}
	if encoded != nil {
		s.progress.sent.Store(f.box.last)
		s.server.metrics.sent.Inc()
	}
	f.box.delivered(time.Now())
	return f.box.last.message(), nil
}
