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

	// Prefix of aliases, and of the aliases of assignments that clusters request; empty: there
	// are none.
	prefix, services string

	chosen atomic.Int64 // number of variants
	peak   atomic.Int64 // largest number of resources so far
	copies atomic.Int64 // bytes of the copies of pages

	mu        sync.RWMutex // held while watches begin and end; held for reading while one of a known slot begins
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

// set puts a resource into the slot of a name, or removes it (nil). The caller has to notify the
// slot. It returns nil if there is no slot to remove anything from.
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
	existed := s.resource != nil
	if existed && r != nil && t.whole && r.frame.service == s.resource.frame.service {
		r.frame.needed = s.resource.frame.needed
	}
	s.resource, s.rendered = r, nil
	s.mu.Unlock()
	if s.alias != nil {
		t.sorted = nil
	}

	switch {
	case r != nil && !existed:
		t.present++
		t.peak.Store(max(t.peak.Load(), int64(t.present)))
		for sub := range t.wildcards {
			if sub.stream.permitted.Has(name) {
				t.watchChosen(s, sub.choice, false, sub)
			}
		}
	case r == nil && existed:
		t.present--
		t.dropUnseen(s)
		t.collect(s)
	}
	return s
}

// dropUnseen ends the wildcard watches of a removed resource that the client was never sent.
func (t *table) dropUnseen(s *slot) {
	for _, variant := range append(slices.Collect(maps.Values(s.variants)), s) {
		variant.mu.Lock()
		watches := slices.Clone(variant.watches)
		for _, p := range variant.positions {
			watches = append(watches, p.group.watches(p.index)...)
		}
		variant.mu.Unlock()
		for _, w := range watches {
			t.drop(w, func() bool { return !w.named && w.sent == 0 })
		}
	}
}

// remove removes a resource and notifies its watches. It returns the slot, or nil.
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

// watch makes sub watch the slot of a name, or a variant of it. It makes both if missing, and
// reports whether it made the variant.
func (t *table) watch(name, choice string, located bool, sub *subscription) (w *watch, created bool) {
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

// watchKnown makes sub watch the slot of a name, or returns nil if there is none. Many clients
// may begin to watch at the same time.
func (t *table) watchKnown(name string, located bool, sub *subscription) *watch {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if s := t.slots[name]; s != nil {
		return t.watchLocked(s, sub, located)
	}
	return nil
}

// watchChosen makes sub watch a slot, or the chosen variant of it.
func (t *table) watchChosen(s *slot, choice string, located bool, sub *subscription) (w *watch, created bool) {
	if choice != "" {
		s, created = t.variantLocked(s, choice)
	}
	if w = t.watchLocked(s, sub, located); w.slot != s { // watched already
		t.collect(s)
		created = false
	}
	return w, created
}

// watchAll makes sub watch every present and future resource, in its own variant. It visits
// every present watch, and reports whether it made variants.
func (t *table) watchAll(sub *subscription, visit func(*watch)) (created bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wildcards[sub] = struct{}{}
	for _, s := range t.slots {
		s.mu.Lock()
		present := s.resource != nil
		s.mu.Unlock()
		if present && sub.stream.permitted.Has(s.baseName()) {
			w, news := t.watchChosen(s, sub.choice, false, sub)
			created = created || news
			visit(w)
		}
	}
	return created
}

// unwatchAll ends watchAll. Watches by name stay.
func (t *table) unwatchAll(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.wildcards, sub)
	for _, w := range sub.watches() {
		t.drop(w, func() bool { return !w.named })
	}
}

// forget ends all of sub's watches.
func (t *table) forget(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.wildcards, sub)
	t.leave(sub)
	for _, w := range sub.watches() {
		t.drop(w, func() bool { return true })
	}
}

// unwatch ends one watch if mayEnd still holds under the subscription's lock.
func (t *table) unwatch(w *watch, mayEnd func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(w, mayEnd)
}

func (t *table) watchLocked(s *slot, sub *subscription, located bool) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.mu.Lock()
	defer sub.mu.Unlock()
	key := s.key(located)
	if existing := sub.interest.find(sub, key); existing != nil {
		return existing
	}
	w := &watch{slot: s, sub: sub, index: int32(len(s.watches)), located: located}
	sub.interest.watches[key] = w
	s.watches = append(s.watches, w)
	return w
}

func (t *table) drop(w *watch, mayEnd func() bool) {
	if w.detach(mayEnd) {
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
