package coordinator

import (
	"context"
	"fmt"
	"time"

	"hdsd/api"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/internal/caller"
	"hdsd/store"
)

// Annotate implements api.Controller.
func (c *control) Annotate(ctx context.Context, note api.RecordedEvent) (api.RecordedEvent, error) {
	note.Identity = caller.FromContext(ctx).Identity
	err := c.carryOut(ctx, "the note is kept in memory only", func() error {
		if note.Cluster != "" && c.core.rulings.Cluster(note.Cluster) == nil && !c.store.KnownCluster(note.Cluster) {
			return fmt.Errorf("%w %q", api.ErrUnknownCluster, note.Cluster)
		}
		c.store.AppendEvents([]store.Event{{
			Time: note.Time, Kind: storev1.EventKind_NOTE, Cluster: note.Cluster, Author: note.Author, Identity: note.Identity, Text: note.Text,
		}})
		c.record(ctx, time.Now(), store.AuditEntry{
			Action: "Annotate", Target: note.Cluster, Author: note.Author, After: note.Time.UTC().Format(time.RFC3339), Reason: note.Text,
		})
		return nil
	})
	return note, err
}
