package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"hdsd/api"
	"hdsd/peer"
	"hdsd/store"
)

// record adds a change to the audit. It does not wait for the disk: what was changed is
// flushed afterwards, and the entry with it.
func (c *control) record(ctx context.Context, now time.Time, e store.AuditEntry) {
	by := peer.FromContext(ctx)
	e.Time, e.Identity, e.Address, e.Author = now.UTC().Round(0), by.Identity, by.Address, cmp.Or(e.Author, by.Identity)
	c.store.AppendAudit(e)
	c.core.log.Info().Str("event", "audit").Str("identity", e.Identity).Str("address", e.Address).Str("author", e.Author).
		Str("action", e.Action).Str("target", e.Target).Str("cluster_version", e.Version).Str("before", e.Before).
		Str("after", e.After).Str("reason", e.Reason).Msg("somebody changed what hdsd does")
}

// Audit implements api.Controller.
func (c *control) Audit(_ context.Context, q api.AuditQuery) ([]api.AuditEntry, bool, error) {
	found, more, err := c.store.Audit(store.AuditQuery{Start: q.Start, End: q.End, After: q.After, NewestFirst: q.NewestFirst, Limit: q.Limit})
	shown := make([]api.AuditEntry, len(found))
	for i, e := range found {
		shown[i] = api.AuditEntry{
			Time: e.Time, Identity: e.Identity, Address: e.Address, Author: e.Author, Action: e.Action, Target: e.Target, Version: e.Version,
			Before: e.Before, After: e.After, Reason: e.Reason, Place: e.Place,
		}
	}
	return shown, more, err
}

// told describes something in force; it is empty for nil.
func told[T any, P interface {
	*T
	fmt.Stringer
}](in P) string {
	if in == nil {
		return ""
	}
	return in.String()
}
