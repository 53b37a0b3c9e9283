package eds

import (
	"sync"
	"time"

	"hdsd/publish"
)

// subscription is one type on one stream: the client's interest, the changes since the last
// response, and the client's answers.
type subscription struct {
	// Set once.
	stream *stream
	node   string // the client's id
	table  *table
	delta  bool
	gRPC   bool   // it is a gRPC client
	choice string // variant for clients without a parameter

	requests requests // owned by the receiving goroutine

	mu       sync.Mutex
	interest interest
	queue    queue
	delivery delivery
	beat     heartbeat
	answer   bool     // a response is due even if it is empty
	refusing bool     // recorder.refusing has it
	paused   bool     // a request is being processed: send nothing yet
	warming  []string // assignments that clusters in the next response will wait for

	sync firstSync // guarded by the server's admission
}

func newSubscription(s *stream, t *table) *subscription {
	u := &subscription{
		stream: s, node: s.nodeID, table: t, delta: s.delta, gRPC: s.features.gRPC,
		choice: s.server.zoning.choice(t, s.features.locality), interest: interest{watches: make(map[string]*watch), lease: s.names},
	}
	u.requests = requests{sub: u, legacy: true}
	if u.beat.ttl = t.lifetime(&s.features, s.delta); u.beat.ttl > 0 {
		u.beat.start(&u.mu, s.wakeUp)
	}
	return u
}

// end handles the end of the stream.
func (u *subscription) end() {
	u.mu.Lock()
	u.beat.stop()
	u.mu.Unlock()
	u.stream.server.admission.leave(u)
	u.table.forget(u)
	u.stream.server.recorder.refusing.Forget(u)
}

// whole reports whether a response has to hold every watched resource.
func (u *subscription) whole() bool { return u.table.whole && !u.delta }

// watches returns the present watches.
func (u *subscription) watches() []*watch {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.interest.list()
}

// changed queues a watch because its resource changed.
func (u *subscription) changed(w *watch) {
	u.mu.Lock()
	u.queue.begin(&u.stream.server.published.changed)
	ready := u.queue.push(w) && !u.delivery.waiting && !u.paused
	u.mu.Unlock()
	if ready {
		u.stream.wakeUp()
	}
}

// resend queues a watch whose resource is sent even if the client has it.
func (u *subscription) resend(w *watch) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queue.force(w)
}

// requeueWithheld queues the names without an answer yet.
func (u *subscription) requeueWithheld() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requeueWithheldLocked()
}

func (u *subscription) requeueWithheldLocked() {
	for w := range u.interest.all() {
		if w.withheld {
			u.queue.push(w)
		}
	}
}

// drop ends a watch. It is called under the locks of slot and subscription.
func (u *subscription) drop(w *watch) {
	u.interest.remove(w)
	u.delivery.clearFailure(w)
	u.stream.server.recorder.settle(u)
	u.queue.dropped(w)
}

// pause keeps the sender from answering half a request.
func (u *subscription) pause() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paused = true
}

// unpause wakes the sender only if it may have something to send, or has to see that a first
// sync has ended: most requests are ACKs.
func (u *subscription) unpause() {
	u.mu.Lock()
	u.paused = false
	idle := u.delivery.waiting || !u.interest.due() && u.queue.len() == 0 && !u.answer && !u.beat.pending()
	u.mu.Unlock()
	if !idle || !u.sync.finished.Load() {
		u.stream.wakeUp()
	}
}

// requireAnswer makes a response due even if it is empty: a wildcard client has to learn that
// there is nothing.
func (u *subscription) requireAnswer() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = true
}

// stale reports whether a nonce is of a response older than the latest, and the latest has been
// answered.
func (u *subscription) stale(nonce string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.delivery.stale(nonce)
}

// acknowledge handles the ACK or NACK in a request.
func (u *subscription) acknowledge(r *request) {
	if r.nonce == "" {
		return
	}
	s := u.stream.server
	u.mu.Lock()
	if r.refusal != nil && r.nonce == u.delivery.nonce {
		u.interest.split(u)
	}
	sendings, current := u.delivery.answer(r.nonce, r.refusal, time.Now(), s.maxResponseBytes)
	if current {
		u.interest.underWay = nil
	}
	if s.recorder.settle(u); current && u.delivery.failures > 0 && r.refusal != nil {
		u.refusing = true
		s.recorder.refusing.Note(u, publish.Refuser{ID: u.node, TypeURL: u.table.typeURL, Text: r.refusal.text, Since: time.Now()})
	}
	u.mu.Unlock()
	switch {
	case !current:
	case r.refusal != nil:
		s.recorder.refused(u.table, u.stream.nodeID, r.refusal.text)
	default:
		s.recorder.accepted(u.table)
	}
	if u.table.whole && len(sendings) > 0 {
		s.unasked.expect(askWithin)
	}
}

// busy reports whether something is to be sent, or to be acknowledged.
func (u *subscription) busy() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.interest.due() {
		return true
	}
	if u.stream.server.published.incomplete.Load() && (u.whole() || u.queue.len() == 0) {
		return u.delivery.waiting // the rest waits for sources, not for the client
	}
	return u.delivery.waiting || u.queue.len() > 0 || u.answer
}
