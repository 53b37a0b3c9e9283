package send

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"hdsd/notify"
)

// Limits of an outbox.
const (
	maxQueued = 2000 // beginnings and ends that wait
	maxDead   = 100  // dead letters that are shown
)

const (
	firstPause = time.Second // after a failure; twice as long after each further one
	longPause  = time.Minute
	lastWords  = 2 * time.Second // for a request in progress when hdsd stops
	resend     = time.Minute     // Alertmanager ends what it does not hear of for 5 minutes, unless configured otherwise
)

// DeadLetter is a notice that was given up.
type DeadLetter struct {
	Time   time.Time
	Notice notify.Notice
	Error  string
}

// State is how an outbox is.
type State struct {
	Name, Type   string
	Open, Queued int
	LastSuccess  time.Time // zero: none since the start
	FailingSince time.Time // zero: it does not fail
	LastError    string
	Dropped      uint64
	Dead         []DeadLetter // newest first
}

// outbox delivers to one receiver.
type outbox struct {
	name   string
	sender *sender
	hub    *Hub
	wake   chan struct{}
	retry  chan struct{} // what failed is worth another attempt now

	mu       sync.Mutex
	target   Target
	queue    []notify.Notice
	inFlight int                          // of the queue's head
	sent     map[notify.Key]notify.Notice // taken by the receiver, and not over
	one      bool                         // send one notice at a time, after a refusal of several
	state    State
}

func newOutbox(h *Hub, name string, t Target, sent []notify.Notice) *outbox {
	o := &outbox{name: name, target: t, sender: h.sender, hub: h, wake: make(chan struct{}, 1), retry: make(chan struct{}, 1), sent: map[notify.Key]notify.Notice{}}
	for _, n := range sent {
		o.sent[n.Key] = n
	}
	return o
}

// retarget changes how the receiver is reached.
func (o *outbox) retarget(t Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.target == t {
		return
	}
	o.target = t
	select {
	case o.retry <- struct{}{}:
	default:
	}
}

// aim returns how the receiver is reached now.
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
	if over := len(o.queue) - maxQueued; over > 0 {
		rest := o.queue[o.inFlight:]
		for i := range rest[:over] {
			o.bury(&rest[i], errors.New("more than 2,000 notifications wait for this receiver"), now)
		}
		o.queue = append(o.queue[:o.inFlight:o.inFlight], rest[over:]...)
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// knows reports whether the receiver has the beginning of what is over, or is to get it.
func (o *outbox) knows(end *notify.Notice) bool {
	return o.sent[end.Key].ID == end.ID || slices.ContainsFunc(o.queue, func(n notify.Notice) bool { return n.ID == end.ID })
}

// cancel removes the beginning of what is over, if nobody was told of it yet.
func (o *outbox) cancel(end *notify.Notice, now time.Time) bool {
	at := slices.IndexFunc(o.queue, func(n notify.Notice) bool { return n.ID == end.ID && n.Ended.IsZero() })
	if at < o.inFlight {
		return false
	}
	o.queue = slices.Delete(o.queue, at, at+1)
	o.bury(end, errors.New("it began and ended before the receiver took it"), now)
	return true
}

// bury makes a dead letter of a notice. The caller holds mu.
func (o *outbox) bury(n *notify.Notice, why error, now time.Time) {
	if !n.Ended.IsZero() {
		delete(o.sent, n.Key)
		o.hub.keep.mark()
	}
	o.state.Dropped++
	o.state.Dead = slices.Insert(o.state.Dead, 0, DeadLetter{Time: now, Notice: *n, Error: why.Error()})
	o.state.Dead = o.state.Dead[:min(len(o.state.Dead), maxDead)]
	o.hub.metrics.dropped.Inc()
	o.hub.log.Warn().Str("event", "notification_dropped").Str("receiver", o.name).Str("kind", string(n.Kind)).Str("summary", n.Text).
		Bool("resolved", !n.Ended.IsZero()).Err(why).Msg("a notification was given up")
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context) {
	again := time.NewTimer(resend)
	defer again.Stop()
	for failures := 0; ; {
		batch, repeated := o.take(), false
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-o.wake:
				continue
			case <-again.C:
				again.Reset(resend)
				batch, repeated = o.toRepeat(), true
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

// take returns what to send next.
func (o *outbox) take() (batch []notify.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	most := maxBatch
	if o.one {
		most = 1
	}
	seen := map[notify.Key]bool{}
	for i := range o.queue[:min(len(o.queue), most)] {
		if seen[o.queue[i].Key] {
			break // its end and its next beginning are told one after the other
		}
		seen[o.queue[i].Key] = true
		batch = append(batch, o.queue[i])
	}
	o.inFlight = len(batch)
	return batch
}

// toRepeat returns what an Alertmanager has to hear of again.
func (o *outbox) toRepeat() (all []notify.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.target.Type != Alertmanager {
		return nil
	}
	for _, n := range o.sent {
		all = append(all, n)
	}
	return all
}

// deliver sends notices. A refusal is no error: what is refused is given up.
func (o *outbox) deliver(ctx context.Context, batch []notify.Notice, repeated bool) error {
	inFlight, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { // what is on its way may arrive: else it is told again after a restart
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

// delivered takes note of how an attempt went.
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
		o.one, o.inFlight = true, 0 // to find out which
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
		o.queue, o.one = nil, false
	}
	return nil
}

// received takes note that the receiver has a notice. The caller holds mu.
func (o *outbox) received(n *notify.Notice, now time.Time) {
	o.hub.metrics.sent.Inc()
	if n.Ended.IsZero() {
		o.sent[n.Key] = *n
		o.hub.metrics.delay.Observe(now.Sub(n.Since).Seconds())
	} else {
		delete(o.sent, n.Key)
	}
	o.hub.keep.mark()
}

// note takes note of an attempt. The caller holds mu.
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

// pause waits before another attempt. It reports whether there is to be one.
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

// present returns how the outbox is.
func (o *outbox) present() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.state
	s.Name, s.Type, s.Open, s.Queued, s.Dead = o.name, o.target.Type, len(o.sent), len(o.queue), slices.Clone(o.state.Dead)
	return s
}

// told returns what the receiver was told and is not over.
func (o *outbox) told() (all []notify.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.sent {
		all = append(all, n)
	}
	return all
}
