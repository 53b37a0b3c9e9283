package eds

import "sync"

// slot is the place of one resource name: what it is now, and who watches it.
// A slot without a resource stands for a name that someone subscribed to.
type slot struct {
	name    string
	variant *variant // nil of the one that most clients get

	mu       sync.Mutex
	resource *resource  // nil where there is none
	watches  []*watch   // in no order; each knows its index
	rendered *rendering // of the latest frame, where someone asked for it; else nil

	variants map[string]*slot // of it, by choice, guarded by the table's lock
}

// current gives the latest frame, nil where there is no resource.
func (s *slot) current() *frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.variant != nil {
		return s.variant.current()
	}
	if s.resource == nil {
		return nil
	}
	return s.resource.current()
}

// setHealth notes the health of one endpoint and tells whether it differs. The
// slot's subscriptions do not know before notify.
func (s *slot) setHealth(index int, status byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resource.health[index] == status {
		return false
	}
	s.resource.health[index] = status
	s.resource.stale = true
	s.rendered = nil
	return true
}

// notify marks the resource as changed for everyone who watches it.
func (s *slot) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.sub.changed(w)
	}
}

// watch is one subscription's interest in one slot.
type watch struct {
	slot  *slot
	sub   *subscription
	index int32 // in slot.watches, guarded by slot.mu

	located bool // subscribed by a locator, so that the answer carries constraints

	// Guarded by sub.mu. Of the subscription's interest:
	named  bool // subscribed by its name, not only by the wildcard
	closed bool // no longer watched
	// Of its queue:
	queued bool // is in the queue
	force  bool // to be sent even if the client has it
	// withheld: that there is no such resource could not be said yet.
	withheld bool
	asking   asking // of a cluster: for its assignment
	// Of its delivery:
	state   state
	holds   bool     // the client has a version of it: it accepted one, or says so
	sent    uint64   // the version that the client was last sent or said it had; 0: none
	sentAt  int64    // when it was sent, in Unix nanoseconds; 0: not on this stream
	failure *failure // the client's latest refusal, until it accepts the resource
}

// state says how the client took what it was last sent.
type state uint8

const (
	fresh   state = iota // nothing was sent yet, or the client had it already
	pending              // sent, neither acknowledged nor refused
	accepted
	refused
)

// has gives the version that the client is known to have, 0 where that is none,
// or not known as long as it has not answered.
func (w *watch) has() uint64 {
	switch {
	case w.state == refused && w.failure != nil:
		return w.failure.had
	case w.state == pending || w.state == refused || !w.holds || w.sent == foreign:
		return 0
	}
	return w.sent
}

// key is what the subscription knows the watch by.
func (w *watch) key() string { return w.slot.key(w.located) }

func (s *slot) key(located bool) string {
	if !located {
		return s.name
	}
	return s.name + separator + s.choice()
}

// present tells, under the slot's lock, whether there is such a resource.
func (s *slot) present() bool {
	if s.variant == nil {
		return s.resource != nil
	}
	base := s.variant.base
	base.mu.Lock()
	defer base.mu.Unlock()
	return base.resource != nil
}

func (s *slot) choice() string {
	if s.variant == nil {
		return ""
	}
	return s.variant.choice
}

func (w *watch) detach(may func() bool) bool {
	s := w.slot
	s.mu.Lock()
	defer s.mu.Unlock()
	w.sub.mu.Lock()
	defer w.sub.mu.Unlock()
	if w.closed || !may() {
		return false
	}
	w.sub.drop(w)

	last := len(s.watches) - 1
	moved := s.watches[last]
	s.watches[w.index], moved.index = moved, w.index
	s.watches[last] = nil
	s.watches = s.watches[:last]
	return true
}
