package eds

import (
	"slices"
	"sync"
	"time"
)

// subscription is one type on one stream: what is watched, what changed since
// the last response, and how the client took what it was sent.
type subscription struct {
	stream *stream
	node   string // the client's id
	table  *table
	delta  bool
	ttl    time.Duration // what is sent is to be kept so long; 0: for ever
	errors bool          // the client heeds resource_errors
	choice string        // of the variant where the client gives no parameter

	// Owned by the receiving goroutine.
	begun  bool   // a request was seen
	legacy bool   // no request named anything so far: everything is meant
	list   uint64 // hash of the names in the latest state-of-the-world request

	mu        sync.Mutex
	wildcard  bool
	watches   map[string]*watch
	named     int       // watches with a name of the client's own
	located   int       // those by a locator
	nameBytes int       // the length of these names
	dirty     []*watch  // what may have to be sent, oldest change first
	closed    int       // how many of them are watched no longer
	since     int64     // when the oldest change among them was made, by Server.now; 0: none was
	answer    bool      // a response is due even if there is nothing in it
	held      bool      // a request is being taken in: send nothing yet
	waiting   bool      // a response is outstanding
	nonce     string    // of the latest response
	inFlight  []sending // what was in it
	warming   []string  // assignments that new or changed clusters in it will wait for
	lastAck   time.Time // zero where there was none
	lastError string    // of the latest refusal
	refused   int       // bytes of refused frames that are kept
	unasked   unasked   // of clusters
	over      bool      // the stream has ended

	sync  firstSync // guarded by the server's admission
	pulse pulse
}

func newSubscription(s *stream, t *table) *subscription {
	says := s.says
	u := &subscription{
		stream: s, node: s.nodeID, table: t, delta: s.delta, errors: says.errors,
		legacy: true, watches: make(map[string]*watch), choice: s.server.choiceAt(t, says.at),
	}
	if u.ttl = t.lifetime(says, s.delta); u.ttl > 0 {
		u.startPulse()
	}
	return u
}

// end is for a stream that ends.
func (u *subscription) end() {
	u.stopPulse()
	u.forgive()
	u.stream.server.admission.leave(u)
}

// changed marks a watch's resource as one that may have to be sent.
func (u *subscription) changed(w *watch) {
	u.mu.Lock()
	if u.since == 0 {
		u.since = u.stream.server.changed.Load()
	}
	ready := u.enqueue(w)
	u.mu.Unlock()
	if ready {
		u.stream.wakeUp()
	}
}

// enqueue is changed under the lock; it tells whether the sender could do
// something about it at once.
func (u *subscription) enqueue(w *watch) bool {
	if w.closed || w.queued {
		return false
	}
	w.queued = true
	u.dirty = append(u.dirty, w)
	return !u.waiting && !u.held
}

// forgetQueued keeps a client that comes and goes without ever acknowledging
// from filling the queue with what it no longer watches.
func (u *subscription) forgetQueued() {
	u.closed++
	if u.closed < 64 || u.closed < len(u.dirty)/2 {
		return
	}
	u.dirty = slices.DeleteFunc(u.dirty, func(w *watch) bool { return w.closed })
	u.closed = 0
}

// resend makes the watch's resource be sent even if the client has it.
func (u *subscription) resend(w *watch) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w.force = true
	u.enqueue(w)
}

// hold keeps the sender from answering half a request.
func (u *subscription) hold() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held = true
}

func (u *subscription) release() {
	u.mu.Lock()
	u.held = false
	u.mu.Unlock()
	u.stream.wakeUp()
}

// acknowledge takes a nonce in; refusal is nil for an ACK. Only the nonce of the
// outstanding response says anything; current tells whether it was that.
func (u *subscription) acknowledge(nonce string, refusal *string, now time.Time) (current bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if nonce != u.nonce || !u.waiting {
		return false
	}
	u.waiting = false
	outcome := accepted
	if refusal != nil {
		outcome = refused
		u.lastError = *refusal
	} else {
		u.lastAck = now
	}
	for _, s := range u.inFlight {
		s.watch.state = outcome
		if refusal == nil {
			s.watch.holds = s.frame != nil
			s.watch.setFailure(nil)
			u.takes(s.watch, s.frame)
		} else {
			s.watch.setFailure(&failure{frame: s.frame, version: versionOf(s.frame), text: *refusal, at: now, had: s.had})
		}
	}
	u.inFlight = nil
	return true
}
