package query

import (
	"context"
	"sync"
	"time"

	"hdsd/api"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/incident"
	"hdsd/store"
)

const (
	// incidentStep is the number of transitions read at a time.
	incidentStep = 4096

	// commitWait is the longest wait of a reading until all events so far are on disk.
	commitWait = time.Second

	// staleAfter is the time without a change after which hdsd looks whether an endpoint is
	// still down: a transition is missing if its source no longer has it, or in a gap.
	staleAfter = time.Minute
)

// incidents is the part of the history that was read, as incidents. ReadIncidents reads on when
// a question needs it, once for all questions meanwhile.
type incidents struct {
	core  Core
	store *store.Store
	due   chan struct{} // has an element if a question waits for a reading

	mu     sync.Mutex
	log    *incident.Log
	wanted *reading // not begun yet; nil: no question waits for one
	whole  bool     // the history was read to its end once

	// ReadIncidents owns these fields.
	read store.Place
	seen time.Time // of the last event
}

// reading reads the history up to its own beginning.
type reading struct {
	done chan struct{} // closed at its end
	err  error         // valid then
}

func newIncidents(core Core, history *store.Store) *incidents {
	return &incidents{core: core, store: history, due: make(chan struct{}, 1), log: incident.NewLog()}
}

// want requests another reading. It returns the reading, and the patience of a question that
// may do without: longer if little is left to read.
func (inc *incidents) want() (next *reading, patience time.Duration) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	if patience = longestWait; inc.whole {
		patience += commitWait
	}
	if inc.wanted == nil {
		inc.wanted = &reading{done: make(chan struct{})}
		inc.due <- struct{}{}
	}
	return inc.wanted, patience
}

// begin returns the wanted reading.
func (inc *incidents) begin() *reading {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	next := inc.wanted
	inc.wanted = nil
	return next
}

// Incidents implements api.Backend. With AllowPartial, it has no incident before the history was
// read to its end once: until then, which ones go on is not known.
func (b *Backend) Incidents(ctx context.Context, q api.IncidentQuery) (page api.IncidentPage, err error) {
	if q.Versions, err = b.names(ctx, q.Cluster); err != nil {
		return page, err
	}
	inc := b.incidents
	next, patience := inc.want()
	err = api.Aside(ctx, func() error {
		var late <-chan time.Time
		if q.AllowPartial {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-next.done:
			return next.err
		case <-late:
			page.Partial = true
			return nil
		case <-b.Core.Done():
			return api.ErrStopping
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return page, err
	}
	visible := b.visible(ctx)
	q.Visible, q.Version = visible.Has, b.Version
	inc.mu.Lock()
	defer inc.mu.Unlock()
	if inc.whole {
		page.Incidents, page.More = inc.log.List(q.Query)
	}
	return page, nil
}

// ReadIncidents reads the history for Incidents until the context ends, on request.
func (b *Backend) ReadIncidents(ctx context.Context) {
	for inc := b.incidents; ; {
		select {
		case <-inc.due:
		case <-ctx.Done():
			return
		}
		next := inc.begin()
		inc.awaitCommit(ctx)
		next.err = inc.readOn(ctx)
		close(next.done)
	}
}

// awaitCommit waits until all events so far are on disk, unless the disk fails.
func (inc *incidents) awaitCommit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, commitWait)
	defer cancel()
	_ = inc.store.Durable(ctx) // then the reading covers less
}

// readOn reads to the end of the history.
func (inc *incidents) readOn(ctx context.Context) error {
	for unfinished := true; unfinished; {
		found, err := inc.store.Kept(inc.read, incidentStep)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		inc.mu.Lock()
		for i := range found {
			inc.log.Add(uint64(found[i].Place), &found[i].Transition)
			inc.read = found[i].Place
		}
		inc.mu.Unlock()
		unfinished = len(found) == incidentStep
	}
	if err := inc.noteEvents(ctx); err != nil {
		return err
	}
	if err := inc.endStale(ctx); err != nil {
		return err
	}
	inc.mu.Lock()
	defer inc.mu.Unlock()
	inc.whole = true
	return nil
}

// noteEvents reads on in the events that may be causes. Those of the last minute are read
// again: some may have been on their way to the disk.
func (inc *incidents) noteEvents(ctx context.Context) error {
	query := store.EventQuery{Limit: incidentStep}
	if !inc.seen.IsZero() {
		start := inc.seen
		if now := time.Now(); now.Before(start) { // the clock was set back, or a note is of the future
			start = now
		}
		query.Start = start.Add(-staleAfter)
	}
	for unfinished := true; unfinished; unfinished = query.After > 0 {
		found, next, err := inc.store.Events(query)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		inc.mu.Lock()
		for i := range found {
			e := &found[i].Event
			if e.Kind == storev1.EventKind_CHECKER_DOUBTED || e.Kind == storev1.EventKind_PATH_DOUBTED {
				inc.log.Note(&incident.Event{Time: e.Time, Checker: e.Checker, To: e.Locality})
			}
			if e.Time.After(inc.seen) {
				inc.seen = e.Time
			}
		}
		inc.mu.Unlock()
		query.After = next
	}
	return nil
}

// endStale ends incidents of endpoints that are down in the log only.
func (inc *incidents) endStale(ctx context.Context) error {
	now := time.Now()
	inc.mu.Lock()
	stale := inc.log.Stale(now.Add(-staleAfter))
	inc.mu.Unlock()
	if len(stale) == 0 {
		return nil
	}
	ended := make(chan []health.Endpoint, 1)
	err := inc.core.Ask(ctx, func(s State) {
		var found []health.Endpoint
		for name, endpoints := range byCluster(stale) {
			if k := s.Cluster(name); k != nil {
				for i := range k.Endpoints {
					e := &k.Endpoints[i]
					if status := s.Status(e); status == health.Unhealthy || status == health.Timeout {
						delete(endpoints, e.Key())
					}
				}
			}
			for e := range endpoints {
				found = append(found, e)
			}
		}
		ended <- found
	})
	if err != nil {
		return err
	}
	inc.mu.Lock()
	defer inc.mu.Unlock()
	inc.log.Remove(<-ended, now)
	return nil
}

func byCluster(endpoints []health.Endpoint) map[string]map[health.Endpoint]bool {
	clusters := map[string]map[health.Endpoint]bool{}
	for _, e := range endpoints {
		if clusters[e.Cluster] == nil {
			clusters[e.Cluster] = map[health.Endpoint]bool{}
		}
		clusters[e.Cluster][e] = true
	}
	return clusters
}
