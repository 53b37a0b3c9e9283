package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hdsd/api"
)

const (
	// longestWait bounds the wait of a question for a newer snapshot. Then it takes the latest.
	longestWait = 100 * time.Millisecond

	// snapshotRest is the pause between two snapshots, as a multiple of the core's work on one.
	snapshotRest = 4

	// mostChanged bounds the changed clusters that wait for a question, beyond those of the
	// latest snapshot.
	mostChanged = 1000
)

// Snapshots makes a Snapshot on request, from the previous one and the changes. So it costs the
// core nothing without questions, and once for all questions at about the same time.
type Snapshots struct {
	due    chan struct{} // has an element if Step is to be called
	latest atomic.Pointer[Snapshot]

	mu     sync.Mutex
	wanted chan struct{} // closed when a snapshot that is not begun yet is done; nil: no question waits for one
	rests  bool          // no snapshot begins

	// The State's goroutine owns these fields.
	changed map[string]struct{} // clusters that the next snapshot looks at
	last    string              // the latest of these
	making  chan struct{}       // the wanted of the current snapshot; nil: none
	todo    []string            // clusters still to look at
	done    []update
	took    time.Duration // so far
}

// update is a cluster with its new row; nil: it is gone.
type update struct {
	name string
	row  *row
}

// NewSnapshots makes Snapshots that have none.
func NewSnapshots() *Snapshots {
	return &Snapshots{due: make(chan struct{}, 1), changed: map[string]struct{}{}}
}

// Due has an element when Step is to be called.
func (s *Snapshots) Due() <-chan struct{} { return s.due }

// Newer returns a snapshot that was begun after the call, or the latest one if the core is too
// busy. It waits if there is none, until stopped is closed.
func (s *Snapshots) Newer(ctx context.Context, stopped <-chan struct{}) (*Snapshot, error) {
	if s.latest.Load() == nil {
		return s.Next(ctx, stopped)
	}
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	return s.wait(ctx, timer.C, stopped)
}

// Next waits for a snapshot that was begun after the call, until stopped is closed.
func (s *Snapshots) Next(ctx context.Context, stopped <-chan struct{}) (*Snapshot, error) {
	return s.wait(ctx, nil, stopped)
}

func (s *Snapshots) wait(ctx context.Context, tooLate <-chan time.Time, stopped <-chan struct{}) (*Snapshot, error) {
	err := api.Aside(ctx, func() error {
		select {
		case <-s.want():
		case <-tooLate:
		case <-stopped:
			return api.ErrStopping
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.latest.Load(), nil
}

// want requests another snapshot, and returns the channel closed at its end.
func (s *Snapshots) want() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted == nil {
		s.wanted = make(chan struct{})
		s.wake()
	}
	return s.wanted
}

// wake makes Step due, unless it is due anyway or there is a pause. The caller holds mu.
func (s *Snapshots) wake() {
	if s.rests {
		return
	}
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// Change notes a change of a cluster, of its endpoints, or of their state.
func (s *Snapshots) Change(name string) {
	latest := s.latest.Load()
	if name == s.last || latest == nil && s.making == nil {
		return // the first snapshot looks at all
	}
	s.last = name
	s.changed[name] = struct{}{}
	if latest != nil && len(s.changed) == len(latest.rows)+mostChanged {
		s.want()
	}
}

// Step goes on with a snapshot, if one is wanted. It looks at a bounded number of endpoints, or
// at one cluster.
func (s *Snapshots) Step(state State) {
	began := time.Now()
	if s.making == nil && !s.begin(state) {
		return
	}
	for cost := 0; len(s.todo) > 0 && cost < stepCost; s.todo = s.todo[1:] {
		cost += s.look(state, s.todo[0])
	}
	if len(s.todo) == 0 {
		s.finish(state)
	}
	s.took += time.Since(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.making != nil {
		s.wake()
		return
	}
	s.rests = true
	time.AfterFunc(snapshotRest*s.took, s.rested)
}

// begin begins a snapshot, if a question waits for one.
func (s *Snapshots) begin(state State) bool {
	s.mu.Lock()
	if !s.rests {
		s.making, s.wanted = s.wanted, nil
	}
	s.mu.Unlock()
	if s.making == nil {
		return false
	}
	s.took = 0
	if s.latest.Load() == nil {
		s.todo = slices.Clone(state.Names())
	}
	for name := range s.changed {
		s.todo = append(s.todo, name)
	}
	clear(s.changed)
	s.last = ""
	return true
}

// look looks at a cluster, and returns what that costs.
func (s *Snapshots) look(state State, name string) (cost int) {
	k := state.Cluster(name)
	if k == nil {
		s.done = append(s.done, update{name: name})
		return 1
	}
	r := newRow(state, k)
	if s.done = append(s.done, update{name, r}); r.isOpen() {
		s.changed[name] = struct{}{}
	}
	return 1 + len(k.Endpoints) + explainCost*len(r.stranded)
}

// finish publishes the snapshot.
func (s *Snapshots) finish(state State) {
	snapshot := &Snapshot{checkers: state.Checkers(), lagging: state.Lagging(), paths: state.Paths(), crew: state.Crew(), frozen: state.Frozen()}
	slices.SortFunc(snapshot.checkers, func(a, b Checker) int { return strings.Compare(a.ID, b.ID) })
	if latest := s.latest.Load(); latest != nil {
		snapshot.rows = latest.rows
	}
	snapshot.rows = merge(snapshot.rows, s.done)
	s.latest.Store(snapshot)
	close(s.making)
	s.making, s.todo, s.done = nil, nil, nil
}

// rested ends a rest.
func (s *Snapshots) rested() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rests = false; s.wanted != nil {
		s.wake()
	}
}

// merge returns rows with some replaced, added or removed. It sorts updates.
func merge(rows []*row, updates []update) []*row {
	if len(updates) == 0 {
		return rows
	}
	slices.SortFunc(updates, func(a, b update) int { return cmp.Compare(a.name, b.name) })
	merged := make([]*row, 0, len(rows)+len(updates))
	for _, u := range updates {
		index, found := slices.BinarySearchFunc(rows, u.name, (*row).compare)
		merged = append(merged, rows[:index]...)
		if rows = rows[index:]; found {
			rows = rows[1:]
		}
		if u.row != nil {
			merged = append(merged, u.row)
		}
	}
	return append(merged, rows...)
}
