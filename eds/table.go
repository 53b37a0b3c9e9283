package eds

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// table holds the slots of one type, and the subscriptions to all of them.
type table struct {
	typeURL string
	whole   bool          // a state-of-the-world response has to hold every resource
	ttl     time.Duration // how long clients keep a resource; 0: for ever
	counts  *typeCounts   // set by NewServer

	// What aliases begin with, and those of the assignments that clusters ask for; empty:
	// there are none.
	prefix, services string

	chosen atomic.Int64 // number of variants
	most   atomic.Int64 // largest number of resources so far

	mu        sync.RWMutex // held while watches begin and end, for reading while one of a known slot begins
	slots     map[string]*slot
	sorted    []*slot // all slots by name; replaced, never changed; nil: not made yet
	wildcards map[*subscription]struct{}
	groups    map[string]*group // by key
	present   int               // slots with a resource
}

func newTable(typeURL string, whole bool, ttl time.Duration) *table {
	return &table{
		typeURL:   typeURL,
		whole:     whole,
		ttl:       ttl,
		slots:     make(map[string]*slot),
		wildcards: make(map[*subscription]struct{}),
		groups:    make(map[string]*group),
	}
}

// set puts a resource into the slot of a name, or removes it (nil). The caller has to
// notify the slot. It returns nil where there is no slot to remove anything from.
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
	if s.alias != nil {
		t.sorted = nil
	}

	switch {
	case r != nil && !was:
		t.present++
		t.most.Store(max(t.most.Load(), int64(t.present)))
		for sub := range t.wildcards {
			if sub.stream.may.Has(name) {
				t.watchChosen(s, sub.choice, false, sub)
			}
		}
	case r == nil && was:
		t.present--
		t.dropUnseen(s)
		t.collect(s)
	}
	return s
}

// dropUnseen ends the wildcard watches of a resource that is gone, where the client was
// never sent it: it has nothing to learn.
func (t *table) dropUnseen(s *slot) {
	for _, each := range append(slices.Collect(maps.Values(s.variants)), s) {
		each.mu.Lock()
		watches := slices.Clone(each.watches)
		each.mu.Unlock()
		for _, w := range watches {
			t.drop(w, func() bool { return !w.named && w.sent == 0 })
		}
	}
}

// remove removes a resource and notifies its watches. It returns the slot, nil where
// there is none.
func (t *table) remove(name string) *slot {
	s := t.set(name, nil)
	if s != nil {
		s.notify()
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
	t.link(s)
	return s
}

// watch makes sub watch the slot of a name, or a variant of it. It makes both if need
// be, and tells whether it made the variant.
func (t *table) watch(name, choice string, located bool, sub *subscription) (w *watch, made bool) {
	if choice == "" {
		if w := t.watchKnown(name, located, sub); w != nil {
			return w, false
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[name]
	if s == nil {
		s = t.add(name)
	}
	return t.watchChosen(s, choice, located, sub)
}

// watchKnown makes sub watch the slot of a name; nil: there is none. Many clients may begin to
// watch at the same time.
func (t *table) watchKnown(name string, located bool, sub *subscription) *watch {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if s := t.slots[name]; s != nil {
		return t.watchLocked(s, sub, located)
	}
	return nil
}

// watchChosen makes sub watch a slot, or the variant of it that is chosen.
func (t *table) watchChosen(s *slot, choice string, located bool, sub *subscription) (w *watch, made bool) {
	if choice != "" {
		s, made = t.variantLocked(s, choice)
	}
	if w = t.watchLocked(s, sub, located); w.slot != s { // watched already
		t.collect(s)
		made = false
	}
	return w, made
}

// watchAll makes sub watch every resource that there is and will be, in its own variant.
// It calls each with every watch of the moment, and tells whether it made variants.
func (t *table) watchAll(sub *subscription, each func(*watch)) (made bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wildcards[sub] = struct{}{}
	for _, s := range t.slots {
		s.mu.Lock()
		present := s.resource != nil
		s.mu.Unlock()
		if present && sub.stream.may.Has(s.own()) {
			w, news := t.watchChosen(s, sub.choice, false, sub)
			made = made || news
			each(w)
		}
	}
	return made
}

// unwatchAll ends watchAll. Watches by name stay.
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
	if m := memberOf(sub); m != nil {
		t.leave(m)
	}
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

func (t *table) watchLocked(s *slot, sub *subscription, located bool) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.mu.Lock()
	defer sub.mu.Unlock()
	w := &watch{slot: s, sub: sub, index: int32(len(s.watches)), located: located}
	if known := sub.interest.add(w); known != nil {
		return known
	}
	s.watches = append(s.watches, w)
	return w
}

func (t *table) drop(w *watch, may func() bool) {
	if w.detach(may) {
		t.collect(w.slot)
	}
}

// collect removes a slot that has neither a resource nor a watch nor variants, and is in no
// group.
func (t *table) collect(s *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watches)+len(s.positions) > 0 {
		return
	}
	if v := s.variant; v != nil {
		if v.base.variants[v.choice] == s {
			delete(v.base.variants, v.choice)
			t.chosen.Add(-1)
			t.collect(v.base)
		}
		return
	}
	if s.resource == nil && len(s.variants) == 0 && len(s.aliases) == 0 && t.slots[s.name] == s {
		delete(t.slots, s.name)
		t.sorted = nil
		t.unlink(s)
	}
}
