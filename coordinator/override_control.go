package coordinator

import (
	"context"
	"maps"
	"slices"
	"time"

	"hdsd/api"
	"hdsd/health"
	"hdsd/store"
)

// SetOverride implements api.Controller.
func (c *control) SetOverride(ctx context.Context, asked api.Override) (api.Override, *api.Override, error) {
	var now, replaced *api.Override
	if err := c.carryOut(ctx, "the override is in force, but a restart may forget it", func() error {
		set, before, err := c.core.override(stored(&asked), time.Now())
		now, replaced = shownOverride(set), shownOverride(before)
		return err
	}); err != nil {
		return api.Override{}, nil, err
	}
	return *now, replaced, nil
}

// ClearOverrides implements api.Controller.
func (c *control) ClearOverrides(ctx context.Context, scope health.Endpoint, all bool, author string) ([]api.Override, error) {
	var ended []api.Override
	if err := c.carryOut(ctx, "the override has ended, but may be in force after a restart", func() error {
		gone, err := c.core.clear(scope, all, author, time.Now())
		ended = shownOverrides(gone)
		return err
	}); err != nil {
		return nil, err
	}
	return ended, nil
}

// Overrides implements api.Controller.
func (c *control) Overrides(ctx context.Context) ([]api.Override, error) {
	var found []api.Override
	if err := c.core.ask(ctx, func() { found = shownOverrides(slices.Collect(maps.Values(c.core.overrides.all))) }); err != nil {
		return nil, err
	}
	return found, nil
}

// shownOverrides gives them by their scopes, with how many endpoints each
// decides now.
func shownOverrides(all []*override) []api.Override {
	shown := make([]api.Override, len(all))
	for i, o := range all {
		shown[i] = *shownOverride(o)
	}
	slices.SortFunc(shown, func(a, b api.Override) int { return a.Scope.Compare(b.Scope) })
	return shown
}

func shownOverride(o *override) *api.Override {
	if o == nil {
		return nil
	}
	return &api.Override{
		Scope: o.Scope, Status: o.Status, Reason: o.Reason, Author: o.Author, Since: o.Since, Until: o.Until, Endpoints: o.endpoints,
	}
}

func stored(o *api.Override) store.Override {
	return store.Override{Scope: o.Scope, Status: o.Status, Reason: o.Reason, Author: o.Author, Until: o.Until}
}
