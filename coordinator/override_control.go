package coordinator

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/health"
	"hdsd/store"
)

// SetOverride implements api.Controller.
func (c *control) SetOverride(ctx context.Context, asked api.Override) (now api.Override, replaced *api.Override, err error) {
	var refused error
	if err := c.core.ask(ctx, func() {
		var set, before *override
		if set, before, refused = c.core.override(stored(&asked), time.Now()); refused == nil {
			now, replaced = *shownOverride(set), shownOverride(before)
		}
	}); err != nil {
		return now, nil, err
	}
	if refused != nil {
		return now, nil, refused
	}
	if err := c.onDisk(ctx); err != nil {
		return now, nil, status.Errorf(codes.Internal, "the override is in force, but a restart may forget it: %v", err)
	}
	return now, replaced, nil
}

// ClearOverrides implements api.Controller.
func (c *control) ClearOverrides(ctx context.Context, scope health.Endpoint, all bool, author string) (ended []api.Override, err error) {
	var refused error
	if err := c.core.ask(ctx, func() {
		var gone []*override
		gone, refused = c.core.clear(scope, all, author, time.Now())
		ended = shownOverrides(gone)
	}); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	if err := c.onDisk(ctx); err != nil {
		return nil, status.Errorf(codes.Internal, "the override has ended, but may be in force after a restart: %v", err)
	}
	return ended, nil
}

// Overrides implements api.Controller.
func (c *control) Overrides(ctx context.Context) (found []api.Override, err error) {
	err = c.core.ask(ctx, func() {
		all := make([]*override, 0, len(c.core.overrides.all))
		for _, o := range c.core.overrides.all {
			all = append(all, o)
		}
		found = shownOverrides(all)
	})
	if err != nil {
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
