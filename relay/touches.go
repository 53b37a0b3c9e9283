package relay

import "sync"

// touches are the resources whose health may have changed since a stream looked last. The core
// notes them: it waits for no stream, however long that works on something.
type touches struct {
	mu   sync.Mutex
	all  bool
	some map[subject]struct{}
}

// add notes resources; nil: all.
func (t *touches) add(changed []subject) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if changed == nil {
		t.all = true
	}
	if t.some == nil {
		t.some = map[subject]struct{}{}
	}
	for _, s := range changed {
		t.some[s] = struct{}{}
	}
}

// take returns what was noted, and forgets it.
func (t *touches) take() (all bool, some map[subject]struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, some = t.all, t.some
	t.all, t.some = false, nil
	return all, some
}
