package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"hdsd/api"
	"hdsd/log"
	"hdsd/peer"
	"hdsd/store"
)

// audit adds an entry to the audit. It does not wait for the disk: the caller flushes the change, and the
// entry with it.
func (c *control) audit(ctx context.Context, now time.Time, e store.AuditEntry) {
	c.auditAs(operatorOf(ctx, now), e)
}

// auditAs adds an entry about what an operator did.
func (c *control) auditAs(operator *log.Operator, e store.AuditEntry) {
	sign(&e, operator)
	c.store.AppendAudit(e)
	logAudit(c.core.log, &e)
}

// auditOrder adds an entry about an order. Replicas make it of the entry of the log, so that all have it.
func (c *control) auditOrder(ctx context.Context, now time.Time, e store.AuditEntry) {
	if c.core.replication == nil {
		c.audit(ctx, now, e)
	}
}

// operatorOf returns the caller.
func operatorOf(ctx context.Context, now time.Time) *log.Operator {
	caller := peer.FromContext(ctx)
	return &log.Operator{Identity: caller.Identity, Address: caller.Address, Time: now.UTC().Round(0)}
}

// sign sets the operator of an entry of the audit.
func sign(e *store.AuditEntry, o *log.Operator) {
	e.Time, e.Identity, e.Address, e.Author = o.Time, o.Identity, o.Address, cmp.Or(e.Author, o.Identity)
}

// auditOf returns what an order of an operator adds to the audit, by its entry of the log.
func (n *outsideNames) auditOf(e *log.Entry) (list []store.AuditEntry) {
	if e.Operator == nil {
		return nil
	}
	if f := e.Freeze; f != nil {
		list = append(list, freezeAudit(f))
	}
	for i := range e.Overrides {
		list = append(list, n.overrideAudit(&e.Overrides[i]))
	}
	if e.Trust != nil {
		list = append(list, trustAudit(e.Trust))
	}
	for i := range e.Events {
		list = append(list, n.noteAudit(&e.Events[i]))
	}
	for i := range list {
		sign(&list[i], e.Operator)
	}
	return list
}

func logAudit(to zerolog.Logger, e *store.AuditEntry) {
	to.Info().Str("event", "audit").Str("identity", e.Identity).Str("address", e.Address).Str("author", e.Author).
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
