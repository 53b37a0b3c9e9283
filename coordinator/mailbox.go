package coordinator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hdsd/api"
	"hdsd/machine"
)

// mailboxSize is how many events may wait for the core. Posting one more waits.
const mailboxSize = 4096

// ErrStopping answers questions that arrive while hdsd stops.
var ErrStopping = api.ErrStopping

// mailbox is the way to the core's goroutine.
type mailbox struct {
	events chan letter
	waited prometheus.Observer // seconds that each event waited
	heard  time.Time           // when the latest event was posted that the core has handled
	done   chan struct{}       // closed when the core takes no more events
	waits  sync.Map            // by checker, an *atomic.Bool: a report of it without votes waits
}

// letter is an event that was posted.
type letter struct {
	event   machine.Event // nil: none
	posted  time.Time
	waits   *atomic.Bool        // of a report without votes; nil for others
	handled func(now time.Time) // runs on the core's goroutine after the event, at its time; nil: nothing does
}

func newMailbox(waited prometheus.Observer) *mailbox {
	return &mailbox{events: make(chan letter, mailboxSize), waited: waited, done: make(chan struct{})}
}

// heardUntil returns until when the core knows all that was posted. Only the core may ask.
func (m *mailbox) heardUntil(now time.Time) time.Time {
	if len(m.events) > 0 && m.heard.Before(now) {
		return m.heard
	}
	return now
}

// post makes the core handle an event, unless the core has stopped.
func (m *mailbox) post(e machine.Event) { m.send(letter{event: e}) }

func (m *mailbox) send(l letter) {
	l.posted = time.Now()
	select {
	case m.events <- l:
	case <-m.done:
	}
}

// postHeard makes the core know that a checker has reported without votes. If that waits
// already, once is enough: it is known to have reported when the core gets to it.
func (m *mailbox) postHeard(checker string) {
	known, ok := m.waits.Load(checker)
	if !ok {
		known, _ = m.waits.LoadOrStore(checker, new(atomic.Bool))
	}
	waits := known.(*atomic.Bool) // nothing else is stored
	if waits.CompareAndSwap(false, true) {
		m.send(letter{event: machine.Reported{Checker: checker}, waits: waits})
	}
}

// forgetHeard forgets a checker that is gone.
func (m *mailbox) forgetHeard(checker string) { m.waits.Delete(checker) }

// ask makes the core handle an event and waits for it. With an error the core may still be about
// it: the caller must not read the outcome.
func (m *mailbox) ask(ctx context.Context, e machine.Event) error {
	return m.askAnd(ctx, e, func(time.Time) {})
}

// do runs f on the core's goroutine, between two events.
func (m *mailbox) do(f func()) { m.send(letter{handled: func(time.Time) { f() }}) }

// look runs read on the core's goroutine, between two events, and waits for it. With an error, the
// caller must not read the outcome.
func (m *mailbox) look(ctx context.Context, read func()) error {
	return m.askAnd(ctx, nil, func(time.Time) { read() })
}

// askAnd is ask, and handled runs on the core's goroutine after the event, at its time.
func (m *mailbox) askAnd(ctx context.Context, e machine.Event, handled func(time.Time)) error {
	over := make(chan struct{})
	select {
	case m.events <- letter{event: e, posted: time.Now(), handled: func(now time.Time) { handled(now); close(over) }}:
	case <-m.done:
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-over:
		return nil
	case <-m.done:
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}
