package coordinator

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/access"
	"hdsd/api"
	"hdsd/coordinator/ruling"
	"hdsd/health"
	"hdsd/internal/reason"
	"hdsd/store"
)

// SetOverride implements api.Controller.
func (c *control) SetOverride(ctx context.Context, asked api.Override) (api.Override, *api.Override, error) {
	var set ruling.Override
	var replaced *ruling.Override
	err := c.carryOut(ctx, "the override is in force, but a restart undoes that", func() (err error) {
		var effects ruling.Effects
		now := time.Now()
		set, replaced, effects, err = c.core.rulings.SetOverride(now, storedOverride(&asked))
		c.core.applyRulings(now, effects)
		if err == nil && (replaced == nil || replaced.Override != set.Override) {
			c.record(ctx, now, store.AuditEntry{
				Action: "SetOverride", Target: ruling.TargetOf(set.Scope), Author: asked.Author, Reason: asked.Reason,
				Before: explained(replaced), After: explained(&set),
			})
		}
		return refusal(err)
	})
	if failed(err) {
		return api.Override{}, nil, err
	}
	return *shownOverride(&set), shownOverride(replaced), err
}

// ClearOverrides implements api.Controller.
func (c *control) ClearOverrides(ctx context.Context, scope health.Endpoint, all bool, author string) ([]api.Override, error) {
	var ended []ruling.Override
	err := c.carryOut(ctx, "the override has ended, but a restart undoes that", func() (err error) {
		var effects ruling.Effects
		now := time.Now()
		ended, effects, err = c.core.rulings.ClearOverrides(now, scope, all, author)
		c.core.applyRulings(now, effects)
		for i := range ended {
			c.record(ctx, now, store.AuditEntry{
				Action: "ClearOverrides", Target: ruling.TargetOf(ended[i].Scope), Author: author, Before: explained(&ended[i]),
			})
		}
		return refusal(err)
	})
	if failed(err) {
		return nil, err
	}
	return shownOverrides(ended), err
}

// Overrides implements api.Controller.
func (c *control) Overrides(ctx context.Context) ([]api.Override, error) {
	var found []ruling.Override
	if err := c.core.ask(ctx, func() { found = c.core.rulings.Overrides() }); err != nil {
		return nil, err
	}
	return shownOverrides(found), nil
}

// PreviewOverride implements api.Controller.
func (c *control) PreviewOverride(ctx context.Context, asked api.Override) (p api.Preview, err error) {
	may := access.FromContext(ctx).Clusters().WithVersions(asker{c.core}.Outside)
	if err := c.core.ask(ctx, func() {
		would, refused := c.core.rulings.PreviewOverride(storedOverride(&asked))
		p = api.Preview{Override: *shownOverride(&would.Override), Replaced: shownOverride(would.Replaced), Panics: would.Panics, Total: endpointsOf(c.core.rulings, may)}
		err = refusal(refused)
	}); err != nil {
		return api.Preview{}, err
	}
	return p, err
}

// explained describes an override; it is empty for nil.
func explained(o *ruling.Override) string {
	if o == nil {
		return ""
	}
	return o.Explain()
}

// refusal turns a *ruling.Refusal into an error with a gRPC code.
func refusal(err error) error {
	var refused *ruling.Refusal
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.NotFound:
		return reason.New(codes.NotFound, reason.UnknownOverride, refused.Text)
	}
	return status.Error(codes.FailedPrecondition, refused.Text)
}

// shownOverrides converts overrides for clients, and sorts them by scope.
func shownOverrides(all []ruling.Override) []api.Override {
	shown := make([]api.Override, len(all))
	for i := range all {
		shown[i] = *shownOverride(&all[i])
	}
	slices.SortFunc(shown, func(a, b api.Override) int { return a.Scope.Compare(b.Scope) })
	return shown
}

func shownOverride(o *ruling.Override) *api.Override {
	if o == nil {
		return nil
	}
	return &api.Override{
		Scope: o.Scope, Status: o.Status, Reason: o.Reason, Author: o.Author, Since: o.Since, Until: o.Until, Endpoints: o.Endpoints,
	}
}

func storedOverride(o *api.Override) store.Override {
	return store.Override{Scope: o.Scope, Status: o.Status, Reason: o.Reason, Author: o.Author, Until: o.Until}
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
