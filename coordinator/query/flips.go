package query

import (
	"context"
	"slices"
	"sync"

	"hdsd/api"
	"hdsd/health"
)

// flipsKept is the number of latest changes kept for watches by cluster. A watch that is
// further behind does not know all changed clusters.
const flipsKept = 4096

// flips are the latest changes of health, as the core decides them. The disk may not have them
// yet.
type flips struct {
	mu    sync.Mutex
	list  []*health.Transition // the oldest first
	first uint64               // number of the oldest
	more  chan struct{}        // closed when there are more
}

func newFlips() *flips { return &flips{more: make(chan struct{})} }

// add adds changes. The oldest make room for them.
func (f *flips) add(changes []health.Transition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range changes {
		f.list = append(f.list, &changes[i])
	}
	if surplus := len(f.list) - flipsKept; surplus > flipsKept {
		f.list, f.first = slices.Clone(f.list[surplus:]), f.first+uint64(surplus)
	}
	close(f.more)
	f.more = make(chan struct{})
}

// end returns the number of the next change.
func (f *flips) end() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first + uint64(len(f.list))
}

// after returns the changes from a number on, and the number of missed earlier ones. The
// channel is closed when there are more.
func (f *flips) after(number uint64) (found []*health.Transition, missed uint64, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if number < f.first {
		missed, number = f.first-number, f.first
	}
	return slices.Clone(f.list[number-f.first:]), missed, f.more
}

// await waits for more.
func (f *flips) await(ctx context.Context, more, done <-chan struct{}) error {
	select {
	case <-more:
		return nil
	case <-done:
		return api.ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Flipped tells watches by cluster of changes of health. Call it once the Store has the changes.
func (b *Backend) Flipped(changes []health.Transition) {
	if b.clusterWatchers.Load() > 0 {
		b.flips.add(changes)
	}
}
