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

// audit adds an entry to the audit. It does not wait for the disk: the caller flushes the change, and the
// entry with it.
func (c *control) audit(ctx context.Context, now time.Time, e store.AuditEntry) {
	caller := peer.FromContext(ctx)
	e.Time, e.Identity, e.Address, e.Author = now.UTC().Round(0), caller.Identity, caller.Address, cmp.Or(e.Author, caller.Identity)
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

// describe returns a value as text; empty for nil.
func describe[T any, P interface {
	*T
	fmt.Stringer
}](value P) string {
	if value == nil {
		return ""
	}
	return value.String()
}
