package query

import (
	"context"
	"errors"

	"hdsd/access"
	"hdsd/api"
	"hdsd/health"
	"hdsd/store"
)

const (
	// watchPage is how many changes a watcher sees at once, at most.
	watchPage = 1000

	// listPage is how many endpoints it sees at once. Each watcher has copies of its
	// own, and many may come at the same time.
	listPage = 200
)

// watcher shows the recorded health of endpoints as of one place in the history,
// then what is recorded behind it. It queues nothing: a slow one reads later.
type watcher struct {
	backend *Backend
	query   api.WatchQuery
	may     access.Clusters
	place   store.Place // what is recorded up to here was shown

	// Until synced.
	synced bool
	listed bool
	after  *health.Endpoint // listed up to this one
	until  store.Place      // the place that the listed health is of
}

// Watch implements api.Backend.
func (b *Backend) Watch(ctx context.Context, q api.WatchQuery) (api.Watcher, error) {
	if q.Cluster != "" {
		if err := b.checkKnown(ctx, q.Cluster); err != nil {
			return nil, err
		}
	}
	w := &watcher{backend: b, query: q, may: access.FromContext(ctx).Clusters()}
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
func (w *watcher) Close() { w.backend.tail.leave() }

// Next implements api.Watcher.
func (w *watcher) Next(ctx context.Context) (seen []api.Sight, err error) {
	for len(seen) == 0 && err == nil {
		switch {
		case !w.synced && !w.listed:
			seen, err = w.list(ctx)
		case !w.synced:
			seen, err = w.catchUp(ctx)
		default:
			seen, err = w.await(ctx)
		}
	}
	return seen, watchError(err)
}

// list returns a page of the present endpoints with their recorded health. Later changes
// build on it. The history may have grown since the page before.
func (w *watcher) list(ctx context.Context) ([]api.Sight, error) {
	found, more, err := w.backend.Endpoints(ctx, api.EndpointQuery{
		Cluster: w.query.Cluster, Address: w.query.Address, After: w.after, Limit: listPage,
	})
	if err != nil {
		return nil, err
	}
	keys := make([]health.Endpoint, len(found))
	for i := range found {
		keys[i] = found[i].Endpoint
	}
	held, place, err := w.backend.Store.Latest(keys)
	if err != nil {
		return nil, err
	}
	if w.after == nil {
		w.place = place
	}
	w.until, w.listed = place, !more
	seen := make([]api.Sight, len(found))
	for i := range found {
		w.after = &found[i].Endpoint
		showRecorded(&found[i], held[i])
		seen[i] = api.Sight{Endpoint: &found[i]}
	}
	return seen, nil
}

// showRecorded replaces an endpoint's present health by the recorded one, if a
// change is not recorded yet.
func showRecorded(e *api.EndpointHealth, held *health.Verdict) {
	switch now := &e.Verdict; {
	case held == nil && now.Since.IsZero():
		return
	case held == nil:
		held = &health.Verdict{Reason: "the first verdict is not recorded yet"}
	case held.Status == now.Status && (now.Since.IsZero() || held.Since.Equal(now.Since)):
		return
	}
	e.Verdict, e.Override, e.Voted = *held, nil, nil
	if e.Published != nil && e.Published.Status == held.Status {
		e.Published = nil
	}
}

// catchUp shows what changed while the endpoints were listed, so that all are as of
// one place.
func (w *watcher) catchUp(ctx context.Context) (seen []api.Sight, err error) {
	changes, err := w.backend.Store.After(w.place, watchPage)
	if err != nil {
		return nil, err
	}
	var keys []health.Endpoint
	var held []health.Verdict
	place := w.place
	for i := range changes {
		if changes[i].Place > w.until {
			break
		}
		place = changes[i].Place
		if t := &changes[i].Transition; w.wants(t) {
			keys = append(keys, t.Endpoint)
			held = append(held, health.Verdict{Status: t.To, Since: t.Time, Reason: t.Reason, Observations: t.Observations})
		}
	}
	var found []api.EndpointHealth
	if err := w.backend.Core.Ask(ctx, func(s State) { found = explainAll(s, keys) }); err != nil {
		return nil, err
	}
	w.place = place
	for i := range found {
		showRecorded(&found[i], &held[i])
		seen = append(seen, api.Sight{Endpoint: &found[i]})
	}
	if len(changes) == 0 || changes[len(changes)-1].Place >= w.until {
		w.place, w.synced = w.until, true
		seen = append(seen, api.Sight{Synced: true, Token: w.backend.Store.Token(w.place)})
	}
	return seen, nil
}

// await waits for changes.
func (w *watcher) await(ctx context.Context) (seen []api.Sight, err error) {
	changes, more, err := w.backend.tail.after(w.place, watchPage)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		w.place = c.place
		if w.wants(&c.Transition) {
			seen = append(seen, api.Sight{Change: c.Change, Token: c.Token})
		}
	}
	if len(seen) > 0 {
		return seen, nil
	}
	if len(changes) > 0 {
		return nil, ctx.Err()
	}
	select {
	case <-more:
		return nil, nil
	case <-w.backend.Core.Done():
		return nil, api.ErrStopping
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *watcher) wants(t *health.Transition) bool {
	return (w.query.Cluster == "" || w.query.Cluster == t.Endpoint.Cluster) &&
		(w.query.Address == "" || w.query.Address == t.Endpoint.Address) && w.may.Has(t.Endpoint.Cluster)
}
