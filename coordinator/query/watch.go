package query

import (
	"context"
	"errors"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/store"
)

// watcher shows the recorded health of endpoints as of one place in the history, from a
// listing that it shares with others, then what is recorded behind it. It queues nothing:
// a slow one reads later.
type watcher struct {
	backend *Backend
	query   api.WatchQuery
	visible access.Clusters
	progress

	// These fields are used until synced.
	listing *listing // nil: join one
	number  int      // the number of its next page
}

// Watch implements api.Backend.
func (b *Backend) Watch(ctx context.Context, q api.WatchQuery) (api.Watcher, error) {
	if _, err := b.names(ctx, q.Cluster); err != nil {
		return nil, err
	}
	w := &watcher{backend: b, query: q, visible: b.visible(ctx)}
	if q.Token != "" {
		var err error
		if w.place, err = b.Store.Place(q.Token); err == nil {
			_, err = b.Store.After(w.place, 1) // does the history reach back so far?
		}
		if err != nil {
			return nil, watchError(err)
		}
		w.synced = true
	}
	b.tail.enter()
	if q.ByCluster {
		return b.watchClusters(w)
	}
	return w, nil
}

func watchError(err error) error {
	switch {
	case errors.Is(err, store.ErrBadToken):
		return api.ErrBadToken
	case errors.Is(err, store.ErrTooOld):
		return api.ErrTooOld
	}
	return err
}

// Close implements api.Watcher.
func (w *watcher) Close() {
	if w.backend.tail.leave() {
		w.backend.listings.forget()
	}
}

// Next implements api.Watcher.
func (w *watcher) Next(ctx context.Context, changes int) (seen *api.Batch, err error) {
	for seen == nil && err == nil {
		if w.synced {
			seen, err = w.await(ctx, changes)
		} else {
			seen, err = w.list(ctx)
		}
	}
	return seen, watchError(err)
}

// list returns the next page of a listing.
func (w *watcher) list(ctx context.Context) (*api.Batch, error) {
	listings := w.backend.listings
	if w.listing == nil {
		w.listing, w.number = listings.join(start{w.query.Cluster, w.query.Address, w.query.Filter, w.progress}, w.visible), 0
	}
	p, err := listings.page(ctx, w.listing, w.number)
	switch {
	case err != nil:
		return nil, err
	case p == nil: // it was too slow
		w.listing = nil
		return nil, nil
	}
	w.number++
	if w.progress = p.progress; w.synced {
		w.listing = nil
	}
	return p.Batch, nil
}

// await waits for a number of changes. Once ctx has ended, it takes none: they would be lost.
func (w *watcher) await(ctx context.Context, changes int) (*api.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	seen, place, round, err := w.backend.tail.after(w.place, changes, &w.query, w.visible)
	if err != nil {
		return nil, err
	}
	if place != w.place {
		w.place = place
		return seen, nil
	}
	return nil, w.backend.tail.await(ctx, round, w.backend.Core.Done())
}

func wants(q *api.WatchQuery, visible access.Clusters, t *health.Transition) bool {
	name := t.Endpoint.Cluster
	return (q.Cluster == "" || q.Cluster == name || q.Cluster == visible.Outside(name)) && (q.Address == "" || q.Address == t.Endpoint.Address) && visible.Has(name) &&
		(q.Filter.Has(t.Endpoint.Locality, t.From) || q.Filter.Has(t.Endpoint.Locality, t.To))
}
