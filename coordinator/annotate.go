package coordinator

import (
	"context"
	"fmt"
	"time"

	"hdsd/api"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/peer"
	"hdsd/store"
)

// Annotate implements api.Controller.
func (c *control) Annotate(ctx context.Context, note api.RecordedEvent) (api.RecordedEvent, error) {
	note.Identity = peer.FromContext(ctx).Identity
	known := note.Cluster == "" || c.store.KnownCluster(note.Cluster)
	if err := c.core.inspect(ctx, func() { known = known || c.core.Rulings.Cluster(note.Cluster) != nil }); err != nil {
		return note, err
	}
	if !known {
		return note, fmt.Errorf("%w %q", api.ErrUnknownCluster, note.Cluster)
	}
	order := &machine.Annotate{Event: log.Event{
		Time: note.Time, Kind: log.EventKind(storev1.EventKind_NOTE), Cluster: note.Cluster, Author: note.Author, Identity: note.Identity, Text: note.Text,
	}}
	return note, c.carryOut(ctx, "the note is kept in memory only", order, func(now time.Time) error {
		c.auditOrder(ctx, now, c.core.names.noteAudit(&order.Event))
		return nil
	})
}

// noteAudit describes a note for the audit.
func (n *outsideNames) noteAudit(e *log.Event) store.AuditEntry {
	target, version := n.target(health.Endpoint{Cluster: e.Cluster})
	return store.AuditEntry{
		Action: "Annotate", Target: target, Version: version, Author: e.Author, After: e.Time.UTC().Format(time.RFC3339), Reason: e.Text,
	}
}
