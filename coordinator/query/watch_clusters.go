package query

import (
	"context"
	"maps"
	"slices"
	"time"

	"hdsd/api"
)

const (
	// mostShown is how many changed clusters a watch by cluster shows at once.
	mostShown = 100

	// Whoever is shown that a cluster has changed asks for more. So each watch by cluster makes
	// the time longer that passes between two events of one: the questions of all of them never
	// take more than a part of the time.
	paceEach    = 10 * time.Millisecond
	longestPace = 3 * time.Second
)

// clusterWatcher shows which clusters have changed, as they are now. What changes in between
// adds up: one that is slow is shown less often, and nothing is queued for it.
type clusterWatcher struct {
	*watcher
	changed map[string]struct{} // clusters that are yet to be shown
	shown   time.Time           // when some were shown last
}

// watchClusters makes a watch one by cluster.
func (b *Backend) watchClusters(w *watcher) (api.Watcher, error) {
	if !w.synced {
		_, latest, err := b.Store.Latest(nil)
		if err != nil {
			w.Close()
			return nil, err
		}
		w.place = latest
	}
	b.clusterWatchers.Add(1)
	return &clusterWatcher{watcher: w, changed: map[string]struct{}{}}, nil
}

// Close implements api.Watcher.
func (w *clusterWatcher) Close() {
	w.backend.clusterWatchers.Add(-1)
	w.watcher.Close()
}

// Next implements api.Watcher.
func (w *clusterWatcher) Next(ctx context.Context, _ int) (*api.Batch, error) {
	if !w.synced {
		w.synced = true
		return w.event(&api.Event{Synced: true}), nil
	}
	if err := w.gather(ctx); err != nil {
		return nil, watchError(err)
	}
	// An older one may lack the change. What the caller asks for next is at least as new.
	now, err := w.backend.Core.NextSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	found := &api.ClusterChanges{}
	for _, name := range slices.Sorted(maps.Keys(w.changed)) {
		if found.More = len(found.Clusters) == mostShown; found.More {
			break
		}
		if r := now.find(name); r != nil {
			found.Clusters = append(found.Clusters, w.backend.describe(now, r, w.may))
		}
	}
	clear(w.changed)
	w.shown = time.Now()
	return w.event(&api.Event{Clusters: found}), nil
}

func (w *clusterWatcher) event(e *api.Event) *api.Batch {
	e.Token = w.backend.Store.Token(w.place)
	return &api.Batch{Events: []*api.Event{e}}
}

// gather waits until clusters have changed, and until the pace allows to show them.
func (w *clusterWatcher) gather(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		seen, place, round, err := w.backend.tail.after(w.place, tailStep, &w.query, w.may)
		if err != nil {
			return err
		}
		if seen != nil {
			for _, e := range seen.Events {
				w.changed[e.Transition.Endpoint.Cluster] = struct{}{}
			}
		}
		wait := time.Until(w.shown.Add(w.backend.clusterPace()))
		switch {
		case place != w.place:
			w.place = place
		case len(w.changed) == 0:
			err = w.backend.tail.await(ctx, round, w.backend.Core.Done())
		case wait > 0:
			err = sleep(ctx, wait, w.backend.Core.Done())
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// clusterPace is how much time passes between two events of a watch by cluster.
func (b *Backend) clusterPace() time.Duration {
	return min(time.Duration(b.clusterWatchers.Load())*paceEach, longestPace)
}

// sleep waits for a time.
func sleep(ctx context.Context, d time.Duration, done <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-done:
		return api.ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}
