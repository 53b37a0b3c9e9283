package query

import (
	"context"
	"maps"
	"slices"
	"time"

	"hdsd/api"
)

const (
	// maxShown bounds the changed clusters of one event of a watch by cluster.
	maxShown = 100

	// A client asks questions after each event. So each watch by cluster adds pacePerWatch to the
	// time between two events of a watch, up to longestPace: the questions of all clients never
	// take more than a part of the time.
	pacePerWatch = 10 * time.Millisecond
	longestPace  = 3 * time.Second
)

// clusterWatcher shows the clusters that have changed, as they are now. It adds up the changes
// between two events, so that a slow client gets fewer events, and nothing is queued for it.
type clusterWatcher struct {
	*watcher
	changed map[string]struct{} // clusters for the next event
	shown   time.Time           // of the latest event
}

// watchClusters turns a watch into a watch by cluster.
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
	// An older snapshot may lack the change. The client's next question gets at least this one.
	now, err := w.backend.Core.NextSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	found := &api.ClusterChanges{}
	for _, name := range slices.Sorted(maps.Keys(w.changed)) {
		if found.More = len(found.Clusters) == maxShown; found.More {
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

// gather waits until clusters have changed and the pace allows an event.
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

// clusterPace returns the time between two events of a watch by cluster.
func (b *Backend) clusterPace() time.Duration {
	return min(time.Duration(b.clusterWatchers.Load())*pacePerWatch, longestPace)
}

// sleep waits for a time, or for the end of ctx or of the core.
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
