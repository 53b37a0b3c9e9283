package coordinator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hdsd/api"
	"hdsd/machine"
	"hdsd/replica"
)

// mailboxSize limits the events that wait for the core. A further post waits.
const mailboxSize = 4096

// ErrStopping is the error of calls while hdsd stops.
var ErrStopping = api.ErrStopping

// mailbox passes events to the goroutine of the core.
type mailbox struct {
	events       chan message
	entries      chan message        // of the log of several replicas. They come before events: data planes wait for them
	delay        prometheus.Observer // seconds from the post of an event to its handling
	latestPost   time.Time           // post time of the latest handled event
	done         chan struct{}       // closed when the core takes no more events
	emptyReports sync.Map            // *atomic.Bool by checker: a report without votes waits
}

// message is a posted event.
type message struct {
	event   machine.Event // may be nil
	shared  replica.Event // of the log and other replicas; may be nil
	posted  time.Time
	pending *atomic.Bool        // reset when the core handles a report without votes; nil for others
	done    func(now time.Time) // runs on the goroutine of the core after the event; may be nil
}

func newMailbox(waited prometheus.Observer) *mailbox {
	return &mailbox{events: make(chan message, mailboxSize), entries: make(chan message, mailboxSize), delay: waited, done: make(chan struct{})}
}

// receivedUntil returns the time until which the core has handled all posted events. Only the core calls it.
func (m *mailbox) receivedUntil(now time.Time) time.Time {
	if len(m.events) > 0 && m.latestPost.Before(now) {
		return m.latestPost
	}
	return now
}

// post queues an event, unless the core has stopped.
func (m *mailbox) post(e machine.Event) { m.send(message{event: e}) }

// send queues a message, unless the core has stopped.
func (m *mailbox) send(next message) {
	next.posted = time.Now()
	select {
	case m.events <- next:
	case <-m.done:
	}
}

// postEmptyReport queues a report without votes. It queues one for each checker at a time: the core takes its own
// time for the time of the report.
func (m *mailbox) postEmptyReport(checker string) {
	known, ok := m.emptyReports.Load(checker)
	if !ok {
		known, _ = m.emptyReports.LoadOrStore(checker, new(atomic.Bool))
	}
	pending := known.(*atomic.Bool) // the only type in the map
	if pending.CompareAndSwap(false, true) {
		m.send(message{event: machine.Reported{Checker: checker}, pending: pending})
	}
}

// forgetEmptyReport removes the state of a disconnected checker.
func (m *mailbox) forgetEmptyReport(checker string) { m.emptyReports.Delete(checker) }

// call queues an event, and waits until the core has handled it. After an error, the core may still handle it:
// the caller must not read the outcome.
func (m *mailbox) call(ctx context.Context, e machine.Event) error {
	return m.callThen(ctx, e, func(time.Time) {})
}

// do runs f on the goroutine of the core, between two events.
func (m *mailbox) do(f func()) { m.send(message{done: func(time.Time) { f() }}) }

// inspect runs read on the goroutine of the core, between two events, and waits for it. After an error, the caller
// must not read the outcome.
func (m *mailbox) inspect(ctx context.Context, read func()) error {
	return m.callThen(ctx, nil, func(time.Time) { read() })
}

// callThen queues an event, and waits until the core has handled it and has run then with the time of the event.
func (m *mailbox) callThen(ctx context.Context, e machine.Event, then func(time.Time)) error {
	done := make(chan struct{})
	select {
	case m.events <- message{event: e, posted: time.Now(), done: func(now time.Time) { then(now); close(done) }}:
	case <-m.done:
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-m.done:
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}
