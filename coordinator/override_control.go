package coordinator

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/health"
	"hdsd/internal/reason"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/peer/access"
	"hdsd/ruling"
	"hdsd/store"
)

// Clusters implements api.Controller.
func (c *control) Clusters(ctx context.Context) access.Clusters {
	return access.FromContext(ctx).Clusters().WithVersions(c.core.names.outside)
}

// SetOverride implements api.Controller.
func (c *control) SetOverride(ctx context.Context, asked api.Override) (api.Override, *api.Override, error) {
	order := &machine.SetOverride{Override: storedOverride(&asked)}
	err := c.carryOut(ctx, "the override is in force, but a restart undoes that", order, func(now time.Time) error {
		if order.Err == nil && (order.Replaced == nil || order.Replaced.Override != order.Applied.Override) {
			c.auditOrder(ctx, now, c.core.names.overrideAudit(&log.OverrideChange{Override: order.Applied.Override, Replaced: replacedBy(order), By: asked.Author}))
		}
		return refusal(order.Err)
	})
	if failed(err) {
		return api.Override{}, nil, err
	}
	now := *c.core.names.override(&order.Applied)
	c.count(ctx, &now)
	return now, c.core.names.override(order.Replaced), err
}

// count sets the number of endpoints of an override that replicas have set: this one may lack its clusters.
func (c *control) count(ctx context.Context, o *api.Override) {
	if c.replicas == nil {
		return
	}
	all, _ := c.Overrides(ctx) // without it, the number is that of this replica
	for i := range all {
		if all[i].Scope == o.Scope && all[i].Version == o.Version {
			o.Endpoints = all[i].Endpoints
		}
	}
}

// ClearOverrides implements api.Controller.
func (c *control) ClearOverrides(ctx context.Context, scope health.Endpoint, all bool, author string) ([]api.Override, error) {
	order := &machine.ClearOverrides{Scope: scope, All: all, Author: author}
	err := c.carryOut(ctx, "the override has ended, but a restart undoes that", order, func(now time.Time) error {
		for i := range order.Ended {
			c.auditOrder(ctx, now, c.core.names.overrideAudit(&log.OverrideChange{Override: order.Ended[i].Override, Kind: log.Cleared, By: author}))
		}
		return refusal(order.Err)
	})
	if failed(err) {
		return nil, err
	}
	return c.core.names.overrides(order.Ended), err
}

// Overrides implements api.Controller.
func (c *control) Overrides(ctx context.Context) ([]api.Override, error) {
	if c.replicas != nil {
		return c.replicas.union.Overrides(ctx)
	}
	return c.ownOverrides(ctx)
}

// ownOverrides returns the overrides that this replica has. One of several replicas shows those of the log, also while it
// leads: what a leader has decided and not committed yet may never be. Their endpoints are those that it decides on.
func (c *control) ownOverrides(ctx context.Context) ([]api.Override, error) {
	var found []ruling.Override
	if err := c.core.inspect(ctx, func() {
		if found = c.core.committed().Overrides(); c.core.replication == nil {
			return
		}
		endpoints := map[health.Endpoint]int{}
		for _, o := range c.core.Rulings.Overrides() {
			endpoints[o.Scope] = o.Endpoints
		}
		for i := range found {
			found[i].Endpoints = endpoints[found[i].Scope]
		}
	}); err != nil {
		return nil, err
	}
	return c.core.names.overrides(found), nil
}

// PreviewOverride implements api.Controller.
func (c *control) PreviewOverride(ctx context.Context, asked api.Override) (api.Preview, error) {
	if c.replicas != nil {
		return c.replicas.union.PreviewOverride(ctx, asked)
	}
	return c.previewOwn(ctx, asked)
}

// previewOwn returns the effect that an override would have, by the clusters of this replica or, while it leads, those of
// all.
func (c *control) previewOwn(ctx context.Context, asked api.Override) (p api.Preview, err error) {
	may := c.Clusters(ctx)
	if err := c.core.inspect(ctx, func() {
		would, refused := c.core.Rulings.PreviewOverride(storedOverride(&asked))
		p = api.Preview{Override: *c.core.names.override(&would.Override), Replaced: c.core.names.override(would.Replaced), Panics: would.Panics, Total: endpointsOf(c.core.Rulings, may)}
		err = refusal(refused)
	}); err != nil {
		return api.Preview{}, err
	}
	return p, err
}

// replacedBy returns the override that an order has replaced; nil without one.
func replacedBy(o *machine.SetOverride) *log.Override {
	if o.Replaced == nil {
		return nil
	}
	return &o.Replaced.Override
}

// overrideAudit describes an override, or its end, for the audit.
func (n *outsideNames) overrideAudit(c *log.OverrideChange) store.AuditEntry {
	target, version := n.target(c.Override.Scope)
	e := store.AuditEntry{Target: target, Version: version, Author: c.By}
	if c.Kind != log.Set {
		e.Action, e.Before = "ClearOverrides", explained(&c.Override)
		return e
	}
	e.Action, e.Reason, e.Before, e.After = "SetOverride", c.Override.Reason, explained(c.Replaced), explained(&c.Override)
	return e
}

// explained describes an override; it is empty for nil.
func explained(o *log.Override) string {
	if o == nil {
		return ""
	}
	return (&ruling.Override{Override: *o}).Explain()
}

// refusal turns a *ruling.Refusal into an error with a gRPC code.
func refusal(err error) error {
	var refused *ruling.Refusal
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.UnknownCluster:
		return reason.New(codes.NotFound, reason.UnknownCluster, refused.Text)
	case refused.NotFound:
		return reason.New(codes.NotFound, reason.UnknownOverride, refused.Text)
	}
	return status.Error(codes.FailedPrecondition, refused.Text)
}

func storedOverride(o *api.Override) log.Override {
	return log.Override{Scope: o.Scope, Status: o.Status, Reason: o.Reason, Author: o.Author, Until: o.Until}
}

// endpointsOf counts the endpoints of some clusters, as ruling.Table.Len does those of all.
func endpointsOf(t *ruling.Table, may access.Clusters) (n int) {
	if may.All() {
		return t.Len()
	}
	for _, name := range t.Names() {
		if !may.Has(name) {
			continue
		}
		endpoints := t.Cluster(name).Endpoints
		for i := range endpoints {
			if _, ok := t.IDOf(&endpoints[i]); ok {
				n++
			}
		}
	}
	return n
}
