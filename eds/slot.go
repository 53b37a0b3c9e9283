package eds

import (
	"slices"
	"sync"
)

// slot is the place of one resource name: its resource, and the watches of its subscribers. A
// slot without a resource is for a requested name.
type slot struct {
	name    string
	variant *variant // nil: the base, which most clients get
	alias   *alias   // nil: the name stands for itself

	mu        sync.Mutex
	resource  *resource  // nil if it does not exist
	watches   []*watch   // in no order; each knows its index
	rendered  *rendering // the latest frame in JSON, if a client requested it; else nil
	aliases   []*slot    // aliases of this base
	positions []position // in groups

	variants map[string]*slot // by choice; guarded by the table's lock
}

// current returns the latest frame, or nil.
func (s *slot) current() *frame { return s.currentFor(false) }

// currentFor returns the latest frame for gRPC clients or for all others, or nil.
func (s *slot) currentFor(gRPC bool) *frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.variant != nil {
		return s.variant.current(gRPC)
	}
	switch {
	case s.resource != nil:
		return s.resource.forClient(gRPC).current()
	case s.alias != nil:
		return s.alias.current(s.name, gRPC)
	default:
		return nil
	}
}

// exists reports whether there is a resource.
func (s *slot) exists() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resource != nil
}

// setHealth sets the health of one endpoint and reports whether it differs. Subscriptions learn
// of it by notify.
func (s *slot) setHealth(index int, status byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resource.health[index] == status {
		return false
	}
	s.resource.setHealth(index, status)
	s.rendered = nil
	return true
}

// notify queues the resource for every subscription that watches it.
func (s *slot) notify() {
	for _, alias := range s.notifyOwn() {
		alias.notify()
	}
}

// notifyOwn is notify without the aliases, which it returns.
func (s *slot) notifyOwn() []*slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.sub.changed(w)
	}
	for _, p := range s.positions {
		p.group.notify(p.index)
	}
	return slices.Clone(s.aliases)
}

// watch is one subscription's interest in one slot.
type watch struct {
	slot  *slot
	sub   *subscription
	index int32 // in slot.watches, guarded by slot.mu; unplaced: the group has the place

	located bool // requested by a locator, so that the answer carries constraints

	// Guarded by sub.mu. Of the subscription's interest:
	named  bool  // requested by name, not only by the wildcard
	closed bool  // ended
	cost   uint8 // of the name, as counted against the limit of all names
	// Of its queue:
	queued bool // is in the queue
	force  bool // to be sent even if the client has it
	// withheld: the resource may not exist, which could not be answered yet.
	withheld bool
	// Of its delivery:
	state   state
	holds   bool     // the client has a version of it: it accepted one, or claims so
	sent    uint64   // the version last sent or claimed; 0: none
	sentAt  int64    // time of sending, in Unix nanoseconds; 0: not on this stream
	taken   int64    // of a cluster: time since which the client has it as a checked one, in Unix nanoseconds; 0: it has not
	failure *failure // the client's latest refusal, until it accepts the resource
}

// unplaced is the index of watches in no slot.
const unplaced = -1

// state is the client's answer to the latest response.
type state uint8

const (
	fresh   state = iota // nothing was sent yet, or the client had the version already
	pending              // sent, and neither acknowledged nor refused
	accepted
	refused
)

// heldVersion returns the client's version, 0 if it has none or has not answered yet.
func (w *watch) heldVersion() uint64 {
	switch {
	case w.state == refused && w.failure != nil:
		return w.failure.held
	case w.state == pending || w.state == refused || !w.holds || w.sent == foreign:
		return 0
	}
	return w.sent
}

// current returns the latest frame visible to the client, or nil.
func (w *watch) current() *frame {
	if !w.sub.stream.permitted.Has(w.slot.baseName()) {
		return nil
	}
	return w.slot.currentFor(w.sub.gRPC && !w.sub.table.whole)
}

// present reports, under the slot's lock, whether the resource exists for the client.
func (w *watch) present() bool {
	return w.slot.present() && w.sub.stream.permitted.Has(w.slot.baseName())
}

// key identifies the watch in its subscription.
func (w *watch) key() string { return w.slot.key(w.located) }

func (s *slot) key(located bool) string {
	if !located {
		return s.name
	}
	return s.name + separator + s.choice()
}

// present reports, under the slot's lock, whether the resource exists.
func (s *slot) present() bool {
	var base *slot
	switch {
	case s.variant != nil:
		base = s.variant.base
	case s.alias != nil && s.resource == nil:
		base = s.alias.base
	default:
		return s.resource != nil
	}
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

// detach ends a watch if mayEnd still holds under the locks of slot and subscription.
func (w *watch) detach(mayEnd func() bool) bool {
	s := w.slot
	s.mu.Lock()
	defer s.mu.Unlock()
	w.sub.mu.Lock()
	defer w.sub.mu.Unlock()
	if w.closed || !mayEnd() {
		return false
	}
	w.sub.drop(w)
	if w.index == unplaced {
		return true
	}
	last := len(s.watches) - 1
	moved := s.watches[last]
	s.watches[w.index], moved.index = moved, w.index
	s.watches[last] = nil
	s.watches = s.watches[:last]
	return true
}
