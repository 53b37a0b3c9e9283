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
	// longestWait is how long a question waits for a snapshot that is newer than it. Then it
	// takes the latest.
	longestWait = 100 * time.Millisecond

	// snapshotRest is how many times as long as the core has worked at a snapshot it begins no
	// other.
	snapshotRest = 4

	// mostChanged is how many changed clusters wait for a question beyond those of the latest
	// snapshot.
	mostChanged = 1000
)

// Snapshots makes a Snapshot when somebody asks, from the one before and what has changed. So
// it costs the core nothing while nobody asks, and once for all who ask at about the same time.
type Snapshots struct {
	due    chan struct{} // has an element if Step is to be called
	latest atomic.Pointer[Snapshot]

	mu     sync.Mutex
	wanted chan struct{} // closed when a snapshot is there that is yet to be begun; nil: nobody waits for one
	rests  bool          // none is begun

	// Owned by the goroutine of the State.
	changed map[string]struct{} // clusters that the next snapshot looks at
	last    string              // the latest of these
	making  chan struct{}       // the wanted of the one that is made; nil: none is
	todo    []string            // clusters that it has yet to look at
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

// Newer returns a snapshot that was begun after the call, or the latest one if the core does
// not come to that in time. It waits if there is none, until stopped is closed.
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
	select {
	case <-s.want():
	case <-tooLate:
	case <-stopped:
		return nil, api.ErrStopping
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.latest.Load(), nil
}

// want has another snapshot made, and returns what is closed when it is there.
func (s *Snapshots) want() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted == nil {
		s.wanted = make(chan struct{})
		s.wake()
	}
	return s.wanted
}

// wake has Step called, unless it is to be called anyway or there is a rest. The caller holds mu.
func (s *Snapshots) wake() {
	if s.rests {
		return
	}
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// Change takes note that a cluster has changed: it, an endpoint of it, or what is known of it.
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

// begin begins a snapshot, if somebody waits for one.
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

// finish leaves the snapshot behind.
func (s *Snapshots) finish(state State) {
	next := &Snapshot{checkers: state.Checkers(), lagging: state.Lagging(), paths: state.Paths(), crew: state.Crew(), frozen: state.Frozen()}
	slices.SortFunc(next.checkers, func(a, b Checker) int { return strings.Compare(a.ID, b.ID) })
	if latest := s.latest.Load(); latest != nil {
		next.rows = latest.rows
	}
	next.rows = merge(next.rows, s.done)
	s.latest.Store(next)
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
	all := make([]*row, 0, len(rows)+len(updates))
	for _, u := range updates {
		index, found := slices.BinarySearchFunc(rows, u.name, (*row).compare)
		all = append(all, rows[:index]...)
		if rows = rows[index:]; found {
			rows = rows[1:]
		}
		if u.row != nil {
			all = append(all, u.row)
		}
	}
	return append(all, rows...)
}
