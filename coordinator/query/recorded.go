package query

import (
	"context"

	"hdsd/api"
	"hdsd/store"
)

// RecordedEvents implements api.Backend. Who may not see all clusters is shown what concerns
// none, and what concerns those that they may see.
func (b *Backend) RecordedEvents(ctx context.Context, q api.RecordedEventQuery) (found []api.RecordedEvent, next uint64, err error) {
	if q.Cluster != "" {
		if err := b.checkKnown(ctx, q.Cluster); err != nil {
			return nil, 0, err
		}
	}
	may := b.visible(ctx)
	asked := store.EventQuery{
		Cluster: q.Cluster, Address: q.Address, Checker: q.Checker, Kind: q.Kind, Locality: q.Locality, Start: q.Start, End: q.End,
		NewestFirst: q.NewestFirst, After: q.After,
		May: func(e *store.Event) bool { return may.All() || !e.Whole && (e.Cluster == "" || may.Has(e.Cluster)) },
	}
	for {
		asked.Limit = q.Limit - len(found)
		some, next, err := b.Store.Events(asked)
		if err == nil {
			err = ctx.Err()
		}
		for i := range some {
			found = append(found, recordedEvent(&some[i].Event))
		}
		if err != nil || len(found) == q.Limit || next == 0 {
			return found, next, err
		}
		asked.After = next
	}
}

func recordedEvent(e *store.Event) api.RecordedEvent {
	return api.RecordedEvent{
		Time: e.Time, Kind: api.EventKind(e.Kind), Cluster: e.Cluster, Address: e.Address, Checker: e.Checker,
		Locality: e.Locality, Author: e.Author, Identity: e.Identity, Text: e.Text,
	}
}
