package eds

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// subscription is one type on one stream: what is watched, what changed since
// the last response, and how the client took what it was sent.
type subscription struct {
	stream *stream
	table  *table
	delta  bool

	// Owned by the receiving goroutine.
	begun  bool   // a request was seen
	legacy bool   // no request named anything so far: everything is meant
	list   uint64 // hash of the names in the latest state-of-the-world request

	mu        sync.Mutex
	wildcard  bool
	watches   map[string]*watch
	named     int       // watches with a name of the client's own
	nameBytes int       // the length of these names
	dirty     []*watch  // what may have to be sent, oldest change first
	closed    int       // how many of them are watched no longer
	since     int64     // when the oldest change among them was made, by Server.now; 0: none was
	answer    bool      // a response is due even if there is nothing in it
	held      bool      // a request is being taken in: send nothing yet
	waiting   bool      // a response is outstanding
	nonce     string    // of the latest response
	inFlight  []sending // what was in it
	warming   []string  // assignments that clusters in it will wait for
	lastAck   time.Time // zero where there was none
	lastError string    // of the latest refusal
	refused   int       // bytes of refused frames that are kept
}

func newSubscription(s *stream, t *table) *subscription {
	return &subscription{
		stream: s, table: t, delta: s.delta,
		legacy: true, watches: make(map[string]*watch),
	}
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

// all gives the watches of this moment.
func (u *subscription) all() []*watch {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.allLocked()
}

func (u *subscription) allLocked() []*watch {
	all := make([]*watch, 0, len(u.watches))
	for _, w := range u.watches {
		all = append(all, w)
	}
	return all
}

func (w *watch) setNamed(named bool) {
	if w.named == named {
		return
	}
	w.named = named
	if named {
		w.sub.named++
		w.sub.nameBytes += len(w.slot.name)
	} else {
		w.sub.named--
		w.sub.nameBytes -= len(w.slot.name)
	}
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

// subscribe watches one name. It gives the watch, and whether the name is new
// among those the client gave.
func (u *subscription) subscribe(name string) (w *watch, added bool, err error) {
	u.mu.Lock()
	w = u.watches[name]
	if w != nil && w.named {
		u.mu.Unlock()
		return w, false, nil
	}
	err = u.stream.server.limits.check(u.named+1, u.nameBytes+len(name))
	u.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	w = u.table.watch(name, u)
	u.mu.Lock()
	defer u.mu.Unlock()
	w.setNamed(true)
	return w, true, nil
}

// unsubscribe takes the client's interest in one name back. Where everything
// is watched, the client is told once more how the resource stands.
func (u *subscription) unsubscribe(name string) {
	u.mu.Lock()
	w := u.watches[name]
	if w == nil || !w.named {
		u.mu.Unlock()
		return
	}
	all := u.wildcard
	if all {
		w.setNamed(false)
		w.force = u.delta
		u.enqueue(w)
	}
	u.mu.Unlock()
	u.table.unwatch(w, func() bool { return !all || w.sent == 0 && w.slot.resource == nil })
}

// subscribeAll watches everything; again means that what the client has is to
// be sent once more.
func (u *subscription) subscribeAll(again bool) {
	u.mu.Lock()
	u.wildcard = true
	u.mu.Unlock()
	u.table.watchAll(u, func(w *watch) {
		u.mu.Lock()
		defer u.mu.Unlock()
		w.force = w.force || again
		u.enqueue(w)
	})
	for name, version := range u.droppedInFlight() {
		u.remember(u.table.watch(name, u), version)
	}
}

// droppedInFlight gives the versions of what is under way to the client though
// it gave the names up meanwhile.
func (u *subscription) droppedInFlight() map[string]uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	var dropped map[string]uint64
	for _, s := range u.inFlight {
		if w := s.watch; w.closed && w.sent != 0 {
			if dropped == nil {
				dropped = make(map[string]uint64)
			}
			dropped[w.slot.name] = w.sent
		}
	}
	return dropped
}

// remember notes a version that the client has, or will have when it reads
// what is under way: it may have to be told of its end.
func (u *subscription) remember(w *watch, version uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w.sent = cmp.Or(w.sent, version)
	u.enqueue(w)
}

func (u *subscription) unsubscribeAll() {
	u.mu.Lock()
	was := u.wildcard
	u.wildcard = false
	u.mu.Unlock()
	if was {
		u.table.unwatchAll(u)
	}
}

// acknowledge takes a nonce in; refusal is nil for an ACK. Only the nonce of the
// outstanding response says anything; current tells whether it was that.
func (u *subscription) acknowledge(nonce string, refusal *string, now time.Time) (current bool, warming []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if nonce != u.nonce || !u.waiting {
		return false, nil
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
		} else {
			s.watch.setFailure(&failure{frame: s.frame, version: versionOf(s.frame), text: *refusal, at: now})
		}
	}
	u.inFlight = nil
	warming, u.warming = u.warming, nil
	return true, warming
}

// warm sends assignments again for clusters that changed: the data plane waits
// for one before it uses such a cluster, even if it is the one it has.
func (u *subscription) warm(names []string) {
	u.mu.Lock()
	for _, name := range names {
		if w := u.watches[name]; w != nil && w.sent != 0 {
			w.force = true
			u.enqueue(w)
		}
	}
	u.mu.Unlock()
	u.stream.wakeUp()
}
