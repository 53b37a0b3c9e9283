package coordinator

import (
	"context"
	"fmt"
	"time"

	"hdsd/api"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/peer"
	"hdsd/store"
)

// Annotate implements api.Controller.
func (c *control) Annotate(ctx context.Context, note api.RecordedEvent) (api.RecordedEvent, error) {
	note.Identity = peer.FromContext(ctx).Identity
	err := c.carryOut(ctx, "the note is kept in memory only", nil, func(now time.Time) error {
		if note.Cluster != "" && c.core.Rulings.Cluster(note.Cluster) == nil && !c.store.KnownCluster(note.Cluster) {
			return fmt.Errorf("%w %q", api.ErrUnknownCluster, note.Cluster)
		}
		c.store.AppendEvents([]store.Event{{
			Time: note.Time, Kind: storev1.EventKind_NOTE, Cluster: note.Cluster, Author: note.Author, Identity: note.Identity, Text: note.Text,
		}})
		target, version := c.core.names.target(health.Endpoint{Cluster: note.Cluster})
		c.audit(ctx, now, store.AuditEntry{
			Action: "Annotate", Target: target, Version: version, Author: note.Author, After: note.Time.UTC().Format(time.RFC3339), Reason: note.Text,
		})
		return nil
	})
	return note, err
}
