package coordinator

import (
	"context"
	"time"

	"hdsd/api"
	"hdsd/coordinator/ruling"
	"hdsd/store"
)

// Freeze implements api.Controller.
func (c *control) Freeze(ctx context.Context, asked api.Freeze) (api.Freeze, *api.Freeze, error) {
	var before, after *store.Freeze
	err := c.carryOut(ctx, "publishing is frozen, but a restart undoes that", func() error {
		var effects ruling.Effects
		now := time.Now()
		before, after, effects = c.core.rulings.Freeze(now, asked.Author, asked.Reason, asked.Hold)
		c.core.applyRulings(now, effects)
		c.record(ctx, now, store.AuditEntry{
			Action: "Freeze", Author: asked.Author, Reason: asked.Reason, Before: told(shownFreeze(before)), After: told(shownFreeze(after)),
		})
		return nil
	})
	if failed(err) {
		return api.Freeze{}, nil, err
	}
	return *shownFreeze(after), shownFreeze(before), err
}

// Unfreeze implements api.Controller.
func (c *control) Unfreeze(ctx context.Context, author string) (*api.Freeze, error) {
	var before *store.Freeze
	err := c.carryOut(ctx, "publishing is no longer frozen, but a restart undoes that", func() error {
		var effects ruling.Effects
		before, effects = c.core.rulings.Unfreeze(author)
		now := time.Now()
		c.core.applyRulings(now, effects)
		if before != nil {
			c.record(ctx, now, store.AuditEntry{Action: "Unfreeze", Author: author, Before: told(shownFreeze(before))})
		}
		return nil
	})
	if failed(err) {
		return nil, err
	}
	return shownFreeze(before), err
}

// Frozen implements api.Controller.
func (c *control) Frozen() *api.Freeze { return shownFreeze(c.core.decisions.frozen.Load()) }

func shownFreeze(f *store.Freeze) *api.Freeze {
	if f == nil {
		return nil
	}
	return &api.Freeze{Reason: f.Reason, Author: f.Author, Since: f.Since, Hold: f.Held != nil}
}
