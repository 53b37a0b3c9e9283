package query

import (
	"context"
	"sort"
	"sync"
	"time"

	"hdsd/api"
	"hdsd/peer/access"
	"hdsd/store"
)

const (
	// tailSize is the number of newest changes kept while there are watchers. A watcher that is
	// further behind reads them from the disk.
	tailSize = 16_384

	// tailStep is the number of changes read at once: as many as the store's writer commits.
	tailStep = 4096

	// News is shown in rounds: each watcher makes a round longer, so that waking and serving
	// all of them never takes more than a part of the time.
	roundEach    = 50 * time.Microsecond
	longestRound = 500 * time.Millisecond
)

// sharedChange is a recorded change and the place behind it.
type sharedChange struct {
	place store.Place
	*api.Event
}

// tail is the newest part of the history, read once for all watchers. It has no goroutine: one
// of the waiting watchers, the leader, waits for the store, and lets the others look.
type tail struct {
	store *store.Store
	lead  chan struct{} // held by the leader

	mu        sync.Mutex
	watchers  int
	begun     bool
	start     store.Place // changes begin behind it
	changes   []sharedChange
	committed <-chan struct{} // closed when the store may have more
	round     chan struct{}   // closed when changes may have more
	began     time.Time       // when the round began
	batches   map[wanted]stretch
}

// keptBatches is the number of batches kept for watchers that are behind.
const keptBatches = 256

// wanted is a number of changes behind a place.
type wanted struct {
	behind  store.Place
	changes int
}

// stretch is the next changes for watchers of everything, with the place behind them.
type stretch struct {
	*api.Batch
	place store.Place
}

func newTail(s *store.Store) *tail {
	return &tail{store: s, lead: make(chan struct{}, 1), round: make(chan struct{})}
}

// enter counts a new watcher.
func (t *tail) enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers++
}

// leave uncounts a watcher, and reports whether it was the last. Then the tail keeps nothing.
func (t *tail) leave() (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watchers--; t.watchers == 0 {
		t.begun, t.changes, t.committed, t.batches = false, nil, nil, nil
	}
	return t.watchers == 0
}

// size counts the watchers.
func (t *tail) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.watchers
}

// after returns the changes that a query wants among the limit behind a place (nil if it wants
// none), the place behind them, and a channel that is closed when there may be more.
func (t *tail) after(place store.Place, limit int, q *api.WatchQuery, visible access.Clusters) (*api.Batch, store.Place, <-chan struct{}, error) {
	s, round, ok, err := t.kept(place, limit, q, visible)
	if err != nil || ok {
		return s.Batch, s.place, round, err
	}
	older, err := t.store.After(place, limit)
	s = batchOf(place, t.changesOf(older), q, visible)
	return s.Batch, s.place, round, err
}

// kept does the same, and reports whether the tail reaches back to the place.
func (t *tail) kept(place store.Place, limit int, q *api.WatchQuery, visible access.Clusters) (s stretch, round <-chan struct{}, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		if err := t.begin(); err != nil {
			return s, nil, false, err
		}
	}
	if place < t.start {
		return s, t.round, false, nil
	}
	seesAll := q.Cluster == "" && q.Address == "" && q.Filter.Any() && visible.All()
	if shared, ok := t.batches[wanted{place, limit}]; ok && seesAll {
		return shared, t.round, true, nil
	}
	first := sort.Search(len(t.changes), func(i int) bool { return t.changes[i].place > place })
	s = batchOf(place, t.changes[first:min(first+limit, len(t.changes))], q, visible)
	if seesAll && s.Batch != nil {
		if len(t.batches) >= keptBatches {
			clear(t.batches) // a watcher resumes at place after place
		}
		t.batches[wanted{place, limit}] = s
	}
	return s, t.round, true, nil
}

// batchOf returns the changes that a query wants behind a place.
func batchOf(place store.Place, changes []sharedChange, q *api.WatchQuery, visible access.Clusters) stretch {
	var events []*api.Event
	for _, c := range changes {
		place = c.place
		if wants(q, visible, c.Transition) {
			events = append(events, c.Event)
		}
	}
	if len(events) == 0 {
		return stretch{place: place}
	}
	return stretch{&api.Batch{Events: events}, place}
}

// begin starts to keep new changes.
func (t *tail) begin() error {
	committed := t.store.Committed() // before reading, so that nothing is missed
	_, latest, err := t.store.Latest(nil)
	if err != nil {
		return err
	}
	t.begun, t.start, t.committed, t.batches = true, latest, committed, map[wanted]stretch{}
	return nil
}

// await waits until the round is over. The holder of the lead waits for the store.
func (t *tail) await(ctx context.Context, round <-chan struct{}, done <-chan struct{}) error {
	select {
	case <-round:
		return nil
	case t.lead <- struct{}{}:
		defer func() { <-t.lead }()
		return t.leads(ctx, round, done)
	case <-done:
		return api.ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leads waits for a change, and until the round has been long enough, and ends it.
func (t *tail) leads(ctx context.Context, round <-chan struct{}, done <-chan struct{}) error {
	t.mu.Lock()
	committed, begun := t.committed, t.begun && round == (<-chan struct{})(t.round)
	enough := t.began.Add(min(time.Duration(t.watchers)*roundEach, longestRound))
	t.mu.Unlock()
	if !begun { // another one has ended it, or all watchers have left since
		return ctx.Err()
	}
	select {
	case <-committed:
	case <-done:
		return api.ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	if wait := time.Until(enough); wait > 0 {
		if err := sleep(ctx, wait, done); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		return ctx.Err()
	}
	if t.refresh() != nil {
		t.begun, t.changes = false, nil // each watcher finds the error at its own place
	}
	close(t.round)
	t.round, t.began = make(chan struct{}), time.Now()
	return nil
}

// refresh reads the changes committed since its last call.
func (t *tail) refresh() error {
	committed := t.store.Committed() // before reading, so that nothing is missed
	clear(t.batches)
	for {
		end := t.start
		if len(t.changes) > 0 {
			end = t.changes[len(t.changes)-1].place
		}
		found, err := t.store.After(end, tailStep)
		if err != nil {
			return err
		}
		t.changes = append(t.changes, t.changesOf(found)...)
		if surplus := len(t.changes) - tailSize; surplus > 0 {
			t.start = t.changes[surplus-1].place
			t.changes = append([]sharedChange(nil), t.changes[surplus:]...)
		}
		if len(found) < tailStep {
			t.committed = committed
			return nil
		}
	}
}

func (t *tail) changesOf(found []store.Recorded) []sharedChange {
	list := make([]sharedChange, len(found))
	for i := range found {
		r := &found[i]
		list[i] = sharedChange{r.Place, &api.Event{Token: t.store.Token(r.Place), Transition: &r.Transition}}
	}
	return list
}
