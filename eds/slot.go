package eds

import "sync"

// slot is the place of one resource name: what it is now, and who watches it.
// A slot without a resource stands for a name that someone subscribed to.
type slot struct {
	name string

	mu       sync.Mutex
	resource *resource  // nil where there is none
	watches  []*watch   // in no order; each knows its index
	rendered *rendering // of the latest frame, where someone asked for it; else nil
}

// current gives the latest frame, nil where there is no resource.
func (s *slot) current() *frame {
	s.mu.Lock()
	defer s.mu.Unlock()
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

	// Guarded by sub.mu.
	state  state
	named  bool   // subscribed by its name, not only by the wildcard
	queued bool   // is in sub.dirty
	force  bool   // to be sent even if the client has it
	closed bool   // no longer watched
	holds  bool   // the client has a version of it: it accepted one, or says so
	sent   uint64 // the version that the client was last sent or said it had; 0: none
	sentAt int64  // when it was sent, in Unix nanoseconds; 0: not on this stream
	// failure is the client's latest refusal, until it accepts the resource.
	failure *failure
}

// state says how the client took what it was last sent.
type state uint8

const (
	fresh   state = iota // nothing was sent yet, or the client had it already
	pending              // sent, neither acknowledged nor refused
	accepted
	refused
)

// table holds the slots of one type, and who subscribed to all of them.
type table struct {
	typeURL string
	whole   bool // a state-of-the-world response has to hold every resource

	mu        sync.Mutex // also guards who watches what
	slots     map[string]*slot
	sorted    []*slot // all slots by name, never changed once made; nil: to be made when needed
	wildcards map[*subscription]struct{}
	present   int // slots with a resource
}

func newTable(typeURL string, whole bool) *table {
	return &table{
		typeURL:   typeURL,
		whole:     whole,
		slots:     make(map[string]*slot),
		wildcards: make(map[*subscription]struct{}),
	}
}

// set puts a resource into the slot of that name, or takes it out (nil). Nobody
// is told before the slot's notify. It gives nil where there was no such slot
// to take anything out of.
func (t *table) set(name string, r *resource) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[name]
	if s == nil {
		if r == nil {
			return nil
		}
		s = t.add(name)
	}
	s.mu.Lock()
	was := s.resource != nil
	s.resource, s.rendered = r, nil
	s.mu.Unlock()

	switch {
	case r != nil && !was:
		t.present++
		for sub := range t.wildcards {
			t.watchLocked(s, sub)
		}
	case r == nil && was:
		t.present--
		t.collect(s)
	}
	return s
}

func (t *table) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.present
}

func (t *table) add(name string) *slot {
	s := &slot{name: name}
	t.slots[name], t.sorted = s, nil
	return s
}

// watch makes sub watch the slot of that name, which comes to be if need be.
func (t *table) watch(name string, sub *subscription) *watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[name]
	if s == nil {
		s = t.add(name)
	}
	return t.watchLocked(s, sub)
}

// watchAll makes sub watch every resource there is and will be, and calls each
// with every watch that there is now.
func (t *table) watchAll(sub *subscription, each func(*watch)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wildcards[sub] = struct{}{}
	for _, s := range t.slots {
		s.mu.Lock()
		present := s.resource != nil
		s.mu.Unlock()
		if present {
			each(t.watchLocked(s, sub))
		}
	}
}

// unwatchAll ends watchAll; what is watched by name stays.
func (t *table) unwatchAll(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.wildcards, sub)
	for _, w := range sub.all() {
		t.drop(w, func() bool { return !w.named })
	}
}

// forget ends all of sub's watches.
func (t *table) forget(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.wildcards, sub)
	for _, w := range sub.all() {
		t.drop(w, func() bool { return true })
	}
}

// unwatch ends one watch if, under the subscription's lock, it still may.
func (t *table) unwatch(w *watch, may func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(w, may)
}

func (t *table) watchLocked(s *slot, sub *subscription) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if w := sub.watches[s.name]; w != nil {
		return w
	}
	w := &watch{slot: s, sub: sub, index: int32(len(s.watches))}
	s.watches = append(s.watches, w)
	sub.watches[s.name] = w
	return w
}

func (t *table) drop(w *watch, may func() bool) {
	if w.detach(may) {
		t.collect(w.slot)
	}
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
	w.closed = true
	delete(w.sub.watches, s.name)
	w.setNamed(false)
	w.setFailure(nil)
	if w.queued {
		w.sub.forgetQueued()
	}

	last := len(s.watches) - 1
	moved := s.watches[last]
	s.watches[w.index], moved.index = moved, w.index
	s.watches[last] = nil
	s.watches = s.watches[:last]
	return true
}

// collect takes out a slot that has neither a resource nor a watch.
func (t *table) collect(s *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resource == nil && len(s.watches) == 0 && t.slots[s.name] == s {
		delete(t.slots, s.name)
		t.sorted = nil
	}
}
