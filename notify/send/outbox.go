package send

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"hdsd/notify"
)

// Limits of an outbox.
const (
	maxQueued = 2000 // waiting beginnings and ends
	maxDead   = 100  // kept dead letters
)

const (
	firstPause = time.Second // after a failure; doubled after each further one
	longPause  = time.Minute
	lastWords  = 2 * time.Second // for a request in progress when hdsd stops
	resend     = time.Minute     // Alertmanager ends alerts without news for 5 minutes, unless configured otherwise
)

// DeadLetter is a notice that was not delivered.
type DeadLetter struct {
	Time   time.Time
	Notice notify.Notice
	Error  string
}

// State is the state of an outbox.
type State struct {
	Name, Type   string
	Open, Queued int
	LastSuccess  time.Time // zero: none since the start
	FailingSince time.Time // zero if it does not fail
	LastError    string
	Dropped      uint64
	Dead         []DeadLetter // newest first
}

// outbox delivers to one receiver.
type outbox struct {
	name   string
	sender *sender
	hub    *Hub
	wake   signal
	retry  signal // a failed notice is worth another attempt now

	mu       sync.Mutex
	target   Target
	queue    []notify.Notice
	inFlight int                          // of the queue's head
	accepted map[notify.Key]notify.Notice // accepted by the receiver, and not ended
	single   bool                         // send one notice at a time, after a refusal of several
	state    State
}

func newOutbox(h *Hub, name string, t Target, accepted []notify.Notice) *outbox {
	o := &outbox{name: name, target: t, sender: h.sender, hub: h, wake: newSignal(), retry: newSignal(), accepted: map[notify.Key]notify.Notice{}}
	for _, n := range accepted {
		o.accepted[n.Key] = n
	}
	return o
}

// retarget changes the receiver's address and credentials.
func (o *outbox) retarget(t Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.target != t {
		o.target = t
		o.retry.raise()
	}
}

// aim returns the receiver's present target.
func (o *outbox) aim() Target {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.target
}

// add queues notices. It does not wait.
func (o *outbox) add(notices []notify.Notice, now time.Time) {
	if len(notices) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range notices {
		n := notices[i]
		if !n.Ended.IsZero() && (!o.knows(&n) || o.cancel(&n, now)) {
			continue
		}
		o.queue = append(o.queue, n)
	}
	if excess := len(o.queue) - maxQueued; excess > 0 {
		rest := o.queue[o.inFlight:]
		for i := range rest[:excess] {
			o.bury(&rest[i], errors.New("more than 2,000 notifications wait for this receiver"), now)
		}
		o.queue = append(o.queue[:o.inFlight:o.inFlight], rest[excess:]...)
	}
	o.wake.raise()
}

// knows reports whether the receiver has the beginning of an ended notice, or is to get it.
func (o *outbox) knows(end *notify.Notice) bool {
	return o.accepted[end.Key].ID == end.ID || slices.ContainsFunc(o.queue, func(n notify.Notice) bool { return n.ID == end.ID })
}

// cancel removes the beginning of an ended notice, if it was not sent yet.
func (o *outbox) cancel(end *notify.Notice, now time.Time) bool {
	index := slices.IndexFunc(o.queue, func(n notify.Notice) bool { return n.ID == end.ID && n.Ended.IsZero() })
	if index < o.inFlight {
		return false
	}
	o.queue = slices.Delete(o.queue, index, index+1)
	o.bury(end, errors.New("it began and ended before the receiver took it"), now)
	return true
}

// bury makes a dead letter of a notice. The caller holds mu.
func (o *outbox) bury(n *notify.Notice, reason error, now time.Time) {
	if !n.Ended.IsZero() {
		delete(o.accepted, n.Key)
		o.hub.keep.changed.raise()
	}
	o.state.Dropped++
	o.state.Dead = slices.Insert(o.state.Dead, 0, DeadLetter{Time: now, Notice: *n, Error: reason.Error()})
	o.state.Dead = o.state.Dead[:min(len(o.state.Dead), maxDead)]
	o.hub.metrics.dropped.Inc()
	o.hub.log.Warn().Str("event", "notification_dropped").Str("receiver", o.name).Str("kind", string(n.Kind)).Str("summary", n.Text).
		Bool("resolved", !n.Ended.IsZero()).Err(reason).Msg("a notification was given up")
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context) {
	resendTimer := time.NewTimer(resend)
	defer resendTimer.Stop()
	for failures := 0; ; {
		batch, repeated := o.nextBatch(), false
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-o.wake:
				continue
			case <-resendTimer.C:
				resendTimer.Reset(resend)
				if o.aim().Type == Alertmanager {
					batch, repeated = o.openNotices(), true
				}
			}
		}
		if err := o.deliver(ctx, batch, repeated); err == nil {
			failures = 0
			continue
		}
		if !o.pause(ctx, failures) {
			return
		}
		failures++
	}
}

// nextBatch returns the notices to send next.
func (o *outbox) nextBatch() (batch []notify.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	limit := maxBatch
	if o.single {
		limit = 1
	}
	seen := map[notify.Key]bool{}
	for i := range o.queue[:min(len(o.queue), limit)] {
		if seen[o.queue[i].Key] {
			break // its end and its next beginning are separate requests
		}
		seen[o.queue[i].Key] = true
		batch = append(batch, o.queue[i])
	}
	o.inFlight = len(batch)
	return batch
}

// deliver sends notices. A refusal is no error: refused notices become dead letters.
func (o *outbox) deliver(ctx context.Context, batch []notify.Notice, repeated bool) error {
	inFlight, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { // a request in progress may arrive: else a restart would repeat it
		time.AfterFunc(lastWords, cancel)
	})()
	for part := range slices.Chunk(batch, maxBatch) {
		target := o.aim()
		_, err := o.sender.send(inFlight, &target, part, time.Now())
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err = o.delivered(part, repeated, err, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// delivered records the result of an attempt.
func (o *outbox) delivered(batch []notify.Notice, repeated bool, err error, now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(err, now)
	refused, final := errors.AsType[refusal](err)
	switch {
	case repeated:
		return err
	case err == nil:
		for i := range batch {
			o.received(&batch[i], now)
		}
	case final && len(batch) > 1:
		o.single, o.inFlight = true, 0 // to find the refused one
		return nil
	case final:
		o.bury(&batch[0], refused, now)
	default:
		o.inFlight = 0
		return err
	}
	o.queue = o.queue[o.inFlight:]
	o.inFlight = 0
	if len(o.queue) == 0 {
		o.queue, o.single = nil, false
	}
	return nil
}

// received records that the receiver has a notice. The caller holds mu.
func (o *outbox) received(n *notify.Notice, now time.Time) {
	o.hub.metrics.sent.Inc()
	if n.Ended.IsZero() {
		o.accepted[n.Key] = *n
		o.hub.metrics.delay.Observe(now.Sub(n.Since).Seconds())
	} else {
		delete(o.accepted, n.Key)
	}
	o.hub.keep.changed.raise()
}

// note records an attempt. The caller holds mu.
func (o *outbox) note(err error, now time.Time) {
	s := &o.state
	if err == nil {
		if !s.FailingSince.IsZero() {
			o.hub.log.Info().Str("event", "notify_working").Str("receiver", o.name).Dur("lasted", now.Sub(s.FailingSince)).Msg("the receiver takes notifications again")
		}
		s.LastSuccess, s.FailingSince, s.LastError = now, time.Time{}, ""
		return
	}
	o.hub.metrics.failed.Inc()
	if s.FailingSince.IsZero() {
		s.FailingSince = now
		o.hub.log.Warn().Str("event", "notify_failing").Str("receiver", o.name).Err(err).Msg("the receiver takes no notifications; hdsd goes on trying")
	}
	s.LastError = err.Error()
}

// pause waits before another attempt. It reports whether to make one.
func (o *outbox) pause(ctx context.Context, failures int) bool {
	length := min(firstPause<<min(failures, 10), longPause)
	timer := time.NewTimer(length/2 + rand.N(length/2)) // so that not all come at once
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-o.retry:
	}
	return true
}

// present returns the state of the outbox.
func (o *outbox) present() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.state
	s.Name, s.Type, s.Open, s.Queued, s.Dead = o.name, o.target.Type, len(o.accepted), len(o.queue), slices.Clone(o.state.Dead)
	return s
}

// openNotices returns the notices that the receiver has, and that have not ended.
func (o *outbox) openNotices() []notify.Notice {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.accepted))
}

// signal wakes one goroutine, now or at its next wait.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// raise does not wait.
func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default: // it is raised already
	}
}
