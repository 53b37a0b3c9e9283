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

// lapse is how many intervals a checker stays connected after a fetch.
const lapse = 3

// errLapsed is that a checker came just when it was given up.
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

// visit has c answered.
func (st *stream) visit(ctx context.Context, c *call) (*healthv3.HealthCheckSpecifier, error) {
	c.done = make(chan struct{})
	select {
	case st.calls <- c:
	case <-st.done:
		return nil, st.whyDone()
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

// whyDone gives what ended the stream, or else errLapsed.
func (st *stream) whyDone() error {
	select {
	case <-st.stopped:
		return st.cause
	case <-st.server.gate.Closing():
		return gate.ErrClosing
	default:
		return errLapsed
	}
}

// visits answers the fetches of one checker; it belongs to one goroutine.
type visits struct {
	stream  *stream
	box     outbox
	form    form
	in      message
	reader  reader
	waited  bool        // for the first assignment
	expiry  *time.Timer // when the checker is given up
	silence vigil       // for a report
}

// beVisited runs in a goroutine of its own from the first fetch until there is
// none for three intervals, another takes its place or the server closes.
func (st *stream) beVisited() {
	defer close(st.done)
	defer st.leave()
	interval := st.server.options.Interval
	v := visits{stream: st, box: outbox{grace: interval}, form: form{stream: st}}
	v.expiry, v.silence = stoppedTimer(), vigil{Timer: stoppedTimer()}
	defer v.expiry.Stop()
	defer v.silence.Stop()
	st.connected()
	v.expiry.Reset(lapse * interval)
	for {
		select {
		case <-st.stopped:
			return
		case <-st.server.gate.Closing():
			return
		case <-v.expiry.C:
			return
		case <-v.silence.C:
			st.falls()
		case c := <-st.calls:
			c.spec, c.err = v.answer(c)
			close(c.done)
			v.expiry.Reset(lapse * interval)
		}
	}
}

func (v *visits) answer(c *call) (*healthv3.HealthCheckSpecifier, error) {
	st := v.stream
	st.heard.Store(st.server.now())
	if c.isReport {
		if err := v.in.UnmarshalWire(mem.BufferSlice{mem.SliceBuffer(c.report)}); err != nil {
			return nil, err
		}
		if err := st.hear(&v.in, &v.reader); err != nil {
			return nil, err
		}
	}
	if spec := v.assigned(c.ctx); spec != nil {
		spec = v.form.of(spec)
		v.box.aim(spec)
		return v.compose(spec)
	}
	if v.box.target == nil {
		if err := st.whyDone(); !errors.Is(err, errLapsed) {
			return nil, err
		}
		return &healthv3.HealthCheckSpecifier{Interval: durationpb.New(st.server.options.Interval)}, nil
	}
	if len(v.box.leaving) > 0 {
		return v.compose(nil)
	}
	return v.box.message, nil
}

// assigned gives what was assigned since the last fetch. The first fetch waits
// for it, but not for long.
func (v *visits) assigned(ctx context.Context) *specifier.Specifier {
	st := v.stream
	if spec := st.take(); spec != nil || v.waited {
		v.waited = true
		return spec
	}
	v.waited = true
	patience := time.NewTimer(st.server.options.AssignTimeout)
	defer patience.Stop()
	for {
		select {
		case <-st.wake: // perhaps for what was taken back
			if spec := st.take(); spec != nil {
				return spec
			}
		case <-patience.C:
			return nil
		case <-ctx.Done():
			v.waited = false
			return nil
		case <-st.stopped:
			return nil
		case <-st.server.gate.Closing():
			return nil
		}
	}
}

// compose gives the message that is due, and counts it as sent where it is not
// the one before. Of a new specifier the plan is in force from now on.
func (v *visits) compose(spec *specifier.Specifier) (*healthv3.HealthCheckSpecifier, error) {
	st := v.stream
	encoded, err := v.box.compose(time.Now())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if spec != nil && st.announce(spec, encoded != nil) {
		v.silence.keep(st.plans.Load().current(), patience*st.server.options.Interval)
	}
	if encoded != nil {
		st.told.Store(&told{v.box.message, v.box.digest, time.Now()})
		st.server.metrics.sent.Inc()
	}
	v.box.delivered(time.Now())
	return v.box.message, nil
}
