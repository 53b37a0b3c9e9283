package query

import (
	"sort"
	"sync"

	"hdsd/api"
	"hdsd/store"
)

const (
	// tailSize is how many of the newest changes are kept while anyone watches. A
	// watcher that is further behind reads them from the disk.
	tailSize = 16_384

	// tailStep is how many are read at once: as many as the store's writer commits.
	tailStep = 4096
)

// sharedChange is a recorded change and the place behind it.
type sharedChange struct {
	place store.Place
	*api.Change
}

// tail is the newest part of the history, read once for all watchers. It has no
// goroutine: the first watcher that asks after a commit reads.
type tail struct {
	store *store.Store

	mu       sync.Mutex
	watchers int
	begun    bool
	from     store.Place // changes begin behind it
	changes  []sharedChange
	more     <-chan struct{} // closed when there may be more
}

func newTail(s *store.Store) *tail { return &tail{store: s} }

// enter counts a new watcher.
func (t *tail) enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers++
}

// leave uncounts a watcher. Without any, the tail keeps nothing.
func (t *tail) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watchers--; t.watchers == 0 {
		t.begun, t.changes, t.more = false, nil, nil
	}
}

// size counts the watchers.
func (t *tail) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.watchers
}

// after gives up to limit changes behind a place, and a channel that is closed when
// there may be more.
func (t *tail) after(place store.Place, limit int) ([]sharedChange, <-chan struct{}, error) {
	found, more, kept, err := t.kept(place, limit)
	if err != nil || kept {
		return found, more, err
	}
	older, err := t.store.After(place, limit)
	return t.changesOf(older), more, err
}

// kept does the same, and says whether the tail reaches back to the place.
func (t *tail) kept(place store.Place, limit int) (found []sharedChange, more <-chan struct{}, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return nil, nil, false, err
	}
	first := sort.Search(len(t.changes), func(i int) bool { return t.changes[i].place > place })
	found = append(found, t.changes[first:min(first+limit, len(t.changes))]...)
	return found, t.more, place >= t.from, nil
}

// refresh reads what was committed since the last time.
func (t *tail) refresh() error {
	if t.begun {
		select {
		case <-t.more:
		default:
			return nil
		}
	}
	more := t.store.Committed() // before reading, so that nothing is missed
	if !t.begun {
		_, latest, err := t.store.Latest(nil)
		if err != nil {
			return err
		}
		t.begun, t.from, t.more = true, latest, more
		return nil
	}
	for {
		end := t.from
		if len(t.changes) > 0 {
			end = t.changes[len(t.changes)-1].place
		}
		found, err := t.store.After(end, tailStep)
		if err != nil {
			t.begun, t.changes = false, nil
			return err
		}
		t.changes = append(t.changes, t.changesOf(found)...)
		if surplus := len(t.changes) - tailSize; surplus > 0 {
			t.from = t.changes[surplus-1].place
			t.changes = append([]sharedChange(nil), t.changes[surplus:]...)
		}
		if len(found) < tailStep {
			t.more = more
			return nil
		}
	}
}

func (t *tail) changesOf(found []store.Recorded) []sharedChange {
	out := make([]sharedChange, len(found))
	for i, r := range found {
		out[i] = sharedChange{r.Place, &api.Change{Token: t.store.Token(r.Place), Transition: r.Transition}}
	}
	return out
}
