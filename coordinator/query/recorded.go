package query

import (
	"context"

	"hdsd/api"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/store"
)

// RecordedEvents implements api.Backend. Callers that may not see all clusters get events about
// no cluster, and about their own.
func (b *Backend) RecordedEvents(ctx context.Context, q api.RecordedEventQuery) (found []api.RecordedEvent, next uint64, err error) {
	names, err := b.names(ctx, q.Cluster)
	if err != nil {
		return nil, 0, err
	}
	visible := b.visible(ctx)
	query := store.EventQuery{
		Cluster: q.Cluster, Versions: names, Address: q.Address, Checker: q.Checker, Kind: q.Kind, Locality: q.Locality, Start: q.Start, End: q.End,
		NewestFirst: q.NewestFirst, After: q.After,
		Visible: func(e *store.Event) bool {
			return visible.All() || !e.Whole && (e.Cluster == "" || visible.Has(e.Cluster))
		},
	}
	for {
		query.Limit = q.Limit - len(found)
		page, next, err := b.Store.Events(query)
		if err == nil {
			err = ctx.Err()
		}
		for i := range page {
			shown := recordedEvent(&page[i].Event)
			if !visible.All() && hiddenTexts[page[i].Kind] {
				hide(&shown.Text)
			}
			found = append(found, shown)
		}
		if err != nil || len(found) == q.Limit || next == 0 {
			return found, next, err
		}
		query.After = next
	}
}

// hiddenTexts are kinds of events whose texts may be about clusters hidden from the caller:
// they name sources, or say why a checker is not believed.
var hiddenTexts = map[storev1.EventKind]bool{
	storev1.EventKind_CLUSTER_ADDED: true, storev1.EventKind_CLUSTER_REMOVED: true, storev1.EventKind_PATH_DOUBTED: true,
	storev1.EventKind_CHECKER_DOUBTED: true, storev1.EventKind_CHECKER_BLIND: true, storev1.EventKind_CHECKER_SEES: true,
	storev1.EventKind_CHECKER_SILENT: true, storev1.EventKind_CHECKER_TRUSTED: true, storev1.EventKind_CHECKER_DISTRUSTED: true,
}

func recordedEvent(e *store.Event) api.RecordedEvent {
	return api.RecordedEvent{
		Time: e.Time, Kind: api.EventKind(e.Kind), Cluster: e.Cluster, Address: e.Address, Checker: e.Checker,
		Locality: e.Locality, Author: e.Author, Identity: e.Identity, Text: e.Text,
	}
}
