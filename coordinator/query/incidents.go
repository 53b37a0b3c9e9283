package query

import (
	"context"
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/incident"
	"hdsd/store"
)

const (
	// incidentStep is how many transitions are read between two looks at whether the caller
	// still waits.
	incidentStep = 4096

	// staleAfter is how long an endpoint may be down without a change before hdsd looks at
	// whether it still is: a transition is missing if its source no longer has it, or in a gap.
	staleAfter = time.Minute
)

// incidents is the history as incidents, as far as it was read. Each question reads on.
type incidents struct {
	turn chan struct{} // held by who uses the rest
	log  *incident.Log
	read store.Place
	seen time.Time // of the last event
}

func newIncidents() *incidents {
	return &incidents{turn: make(chan struct{}, 1), log: incident.NewLog()}
}

// Incidents implements api.Backend.
func (b *Backend) Incidents(ctx context.Context, q incident.Query) ([]incident.Incident, bool, error) {
	if q.Cluster != "" {
		if err := b.checkKnown(ctx, q.Cluster); err != nil {
			return nil, false, err
		}
	}
	may := b.visible(ctx)
	q.May = may.Has
	all := b.incidents
	select {
	case all.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	defer func() { <-all.turn }()
	for {
		more, err := b.Store.Kept(all.read, incidentStep)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, false, err
		}
		for i := range more {
			all.log.Add(uint64(more[i].Place), &more[i].Transition)
			all.read = more[i].Place
		}
		if len(more) < incidentStep {
			break
		}
	}
	if err := b.noteEvents(ctx); err != nil {
		return nil, false, err
	}
	if err := b.endStale(ctx); err != nil {
		return nil, false, err
	}
	found, more := all.log.List(q)
	return found, more, nil
}

// noteEvents reads on in the events that may be causes. Those of the last minute are read
// again: some may have been on their way to the disk.
func (b *Backend) noteEvents(ctx context.Context) error {
	all := b.incidents
	asked := store.EventQuery{Limit: incidentStep}
	if !all.seen.IsZero() {
		from := all.seen
		if now := time.Now(); now.Before(from) { // the clock was set back, or a note is of the future
			from = now
		}
		asked.Start = from.Add(-staleAfter)
	}
	for more := true; more; more = asked.After > 0 {
		found, next, err := b.Store.Events(asked)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for i := range found {
			e := &found[i].Event
			if e.Kind == storev1.EventKind_CHECKER_DOUBTED || e.Kind == storev1.EventKind_PATH_DOUBTED {
				all.log.Note(&incident.Event{Time: e.Time, Checker: e.Checker, To: e.Locality})
			}
			if e.Time.After(all.seen) {
				all.seen = e.Time
			}
		}
		asked.After = next
	}
	return nil
}

// endStale ends what is down in the log only.
func (b *Backend) endStale(ctx context.Context) error {
	now := time.Now()
	stale := b.incidents.log.Stale(now.Add(-staleAfter))
	if len(stale) == 0 {
		return nil
	}
	gone := make(chan []health.Endpoint, 1)
	err := b.Core.Ask(ctx, func(s State) {
		var found []health.Endpoint
		for name, of := range byCluster(stale) {
			if k := s.Cluster(name); k != nil {
				for i := range k.Endpoints {
					e := &k.Endpoints[i]
					if status := s.Status(e); status == health.Unhealthy || status == health.Timeout {
						delete(of, e.Key())
					}
				}
			}
			for e := range of {
				found = append(found, e)
			}
		}
		gone <- found
	})
	if err != nil {
		return err
	}
	b.incidents.log.Gone(<-gone, now)
	return nil
}

func byCluster(endpoints []health.Endpoint) map[string]map[health.Endpoint]bool {
	all := map[string]map[health.Endpoint]bool{}
	for _, e := range endpoints {
		if all[e.Cluster] == nil {
			all[e.Cluster] = map[health.Endpoint]bool{}
		}
		all[e.Cluster][e] = true
	}
	return all
}
