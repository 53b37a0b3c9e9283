package coordinator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hdsd/api"
)

// mailboxSize is how many events may wait for the core. Posting one more waits.
const mailboxSize = 4096

// ErrStopping answers questions that arrive while hdsd stops.
var ErrStopping = api.ErrStopping

// mailbox is the way to the core's goroutine.
type mailbox struct {
	events chan func()
	waited prometheus.Observer // seconds that each event waited
	heard  time.Time           // when the latest event was posted that the core has run
	done   chan struct{}       // closed when the core takes no more events
	waits  sync.Map            // by checker, an *atomic.Bool: a report of it without votes waits
}

func newMailbox(waited prometheus.Observer) *mailbox {
	return &mailbox{events: make(chan func(), mailboxSize), waited: waited, done: make(chan struct{})}
}

// timed wraps an event to observe how long it waits.
func (m *mailbox) timed(event func()) func() {
	posted := time.Now()
	return func() {
		m.heard = posted
		m.waited.Observe(time.Since(posted).Seconds())
		event()
	}
}

// heardUntil returns until when the core knows all that was posted. Only the core may ask.
func (m *mailbox) heardUntil(now time.Time) time.Time {
	if len(m.events) > 0 && m.heard.Before(now) {
		return m.heard
	}
	return now
}

// post makes the core run an event, unless the core has stopped.
func (m *mailbox) post(event func()) {
	select {
	case m.events <- m.timed(event):
	case <-m.done:
	}
}

// postHeard makes the core run that a checker has reported without votes. If that waits
// already, once is enough: it is known to have reported when the core gets to it.
func (m *mailbox) postHeard(checker string, event func()) {
	known, ok := m.waits.Load(checker)
	if !ok {
		known, _ = m.waits.LoadOrStore(checker, new(atomic.Bool))
	}
	waits := known.(*atomic.Bool) // nothing else is stored
	if waits.CompareAndSwap(false, true) {
		m.post(func() {
			waits.Store(false)
			event()
		})
	}
}

// forgetHeard forgets a checker that is gone.
func (m *mailbox) forgetHeard(checker string) { m.waits.Delete(checker) }

// ask makes the core run a question and waits for it. With an error the question may
// still be running: the caller must not read what it writes.
func (m *mailbox) ask(ctx context.Context, question func()) error {
	answered := make(chan struct{})
	select {
	case m.events <- m.timed(func() { question(); close(answered) }):
	case <-m.done:
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-answered:
		return nil
	case <-m.done:
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}
