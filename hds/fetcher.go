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

	"hdsd/envoy/specifier"
	"hdsd/internal/gate"
)

// fetchIntervals is how many report intervals a checker stays connected after a
// fetch.
const fetchIntervals = 3

// errLapsed is the error of a fetch that meets the end of its session.
var errLapsed = errors.New("no fetch for three intervals")

// call is a fetch for the goroutine that answers it.
type call struct {
	ctx      context.Context
	isReport bool
	report   []byte

	// Set when done is closed.
	done chan struct{}
	spec *healthv3.HealthCheckSpecifier
	err  error
}

// fetch passes c to the goroutine that answers it, and waits.
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

// whyDone returns the reason for the session's end; errLapsed if there is none.
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
	message *message
	reader  reader
	waited  bool        // for the first assignment
	expiry  *time.Timer // fires at the end of the session
	silence silenceTimer
}

// answerFetches runs in its own goroutine from the first fetch until there is none for three
// intervals, another session replaces it or the server closes.
func (s *session) answerFetches() {
	defer close(s.lifetime.done)
	defer s.leave()
	interval := s.server.options.Interval
	f := fetcher{session: s, box: outbox{grace: interval}, form: form{session: s}, message: newMessage(s.progress.sentPlans)}
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
			if f.silence.expired() {
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
		if err := f.message.UnmarshalWire(mem.BufferSlice{mem.SliceBuffer(c.report)}); err != nil {
			return nil, err
		}
		if err := s.hear(f.message, &f.reader); err != nil {
			return nil, err
		}
	}
	if spec := f.assigned(c.ctx); spec != nil {
		spec = f.form.convert(spec)
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

// assigned returns the assignment since the last fetch. The first fetch waits for one, but not
// for long.
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
		case <-s.pending.wake: // perhaps for a withdrawn one
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

// compose returns the due message, and counts it as sent unless it repeats the one before. The
// plan of a new specifier is in force from now on.
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
