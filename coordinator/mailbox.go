package coordinator

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hdsd/api"
)

// mailboxSize is how many events may wait for the core; whoever posts one more
// waits.
const mailboxSize = 4096

// ErrStopping answers those that still ask while hdsd stops.
var ErrStopping = api.ErrStopping

// mailbox is the way to the core's goroutine.
type mailbox struct {
	events chan func()
	waited prometheus.Observer // seconds, by each event
	done   chan struct{}       // closed when the core takes no more events
}

func newMailbox(waited prometheus.Observer) *mailbox {
	return &mailbox{events: make(chan func(), mailboxSize), waited: waited, done: make(chan struct{})}
}

// timed is an event that notes how long it waited.
func (m *mailbox) timed(event func()) func() {
	posted := time.Now()
	return func() {
		m.waited.Observe(time.Since(posted).Seconds())
		event()
	}
}

// post has the core run an event, unless it has stopped.
func (m *mailbox) post(event func()) {
	select {
	case m.events <- m.timed(event):
	case <-m.done:
	}
}

// ask has the core run a question and waits until it is answered. With an
// error, the question may still be running: what it writes must not be read.
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
