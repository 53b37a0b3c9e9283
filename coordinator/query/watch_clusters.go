package query

import (
	"context"
	"maps"
	"slices"
	"time"

	"hdsd/api"
	"hdsd/store"
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

// placeAge is the longest age of a token's place. A resumed watch shows the clusters that
// changed since.
const placeAge = 10 * time.Second

// clusterWatcher shows the changed clusters in their present state, whether the disk has the
// changes or not. It adds up the changes between two events, so that a slow client gets fewer
// events, and nothing is queued for it.
type clusterWatcher struct {
	*watcher
	resumes bool                // must still read the records behind its token
	number  uint64              // of the next of the flips
	missed  bool                // flips were not kept: other clusters may have changed
	changed map[string]struct{} // clusters for the next event
	shown   time.Time           // of the latest event
	end     store.Place         // of the history, when it was last looked at: the next place
	placed  time.Time           // time of that look
}

// watchClusters turns a watch into a watch by cluster.
func (b *Backend) watchClusters(w *watcher) (api.Watcher, error) {
	b.clusterWatchers.Add(1) // first, so that no flip is left out
	c := &clusterWatcher{watcher: w, resumes: w.synced, number: b.flips.end(), changed: map[string]struct{}{}}
	if !w.synced {
		if err := c.advance(); err != nil {
			c.Close()
			return nil, err
		}
		c.place = c.end
	}
	return c, nil
}

// advance moves the place of tokens to the latest known end of the history. The flips include
// everything recorded by then.
func (w *clusterWatcher) advance() error {
	_, latest, err := w.backend.Store.Latest(nil)
	w.place, w.end, w.placed = w.end, latest, time.Now()
	return err
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
	found := &api.ClusterChanges{More: w.missed}
	for _, name := range slices.Sorted(maps.Keys(w.changed)) {
		if len(found.Clusters) == maxShown {
			found.More = true
			break
		}
		if r := now.find(name); r != nil {
			found.Clusters = append(found.Clusters, w.backend.describe(now, r, w.visible))
		}
	}
	clear(w.changed)
	w.missed, w.shown = false, time.Now()
	return w.event(&api.Event{Clusters: found}), nil
}

func (w *clusterWatcher) event(e *api.Event) *api.Batch {
	e.Token = w.backend.Store.Token(w.place)
	return &api.Batch{Events: []*api.Event{e}}
}

// gather waits until clusters have changed and the pace allows an event.
func (w *clusterWatcher) gather(ctx context.Context) error {
	b := w.backend
	if w.resumes {
		if err := w.resume(ctx); err != nil {
			return err
		}
		w.resumes = false
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(w.placed) > placeAge {
			if err := w.advance(); err != nil {
				return err
			}
		}
		found, missed, more := b.flips.after(w.number)
		w.number += missed + uint64(len(found))
		w.missed = w.missed || missed > 0
		for _, t := range found {
			if wants(&w.query, w.visible, t) {
				w.changed[t.Endpoint.Cluster] = struct{}{}
			}
		}
		var err error
		wait := time.Until(w.shown.Add(b.clusterPace()))
		switch {
		case len(w.changed) == 0 && !w.missed:
			err = b.flips.await(ctx, more, b.Core.Done())
		case wait > 0:
			err = sleep(ctx, wait, b.Core.Done())
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// resume reads the records behind the token.
func (w *clusterWatcher) resume(ctx context.Context) error {
	history := w.backend.Store
	w.missed = history.Stats().Pending > 0 // the rest may not be among the flips
	for unfinished := true; unfinished; {
		found, err := history.After(w.place, tailStep)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for i := range found {
			w.place = found[i].Place
			if t := &found[i].Transition; wants(&w.query, w.visible, t) {
				w.changed[t.Endpoint.Cluster] = struct{}{}
			}
		}
		unfinished = len(found) == tailStep
	}
	w.end, w.placed = w.place, time.Now()
	return nil
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
