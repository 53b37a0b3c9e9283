package coordinator

import (
	"context"
	"time"

	"hdsd/api"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/store"
)

// Freeze implements api.Controller.
func (c *control) Freeze(ctx context.Context, asked api.Freeze) (api.Freeze, *api.Freeze, error) {
	order := &machine.Freeze{Author: asked.Author, Reason: asked.Reason, Hold: asked.Hold}
	err := c.carryOut(ctx, "publishing is frozen, but a restart undoes that", order, func(now time.Time) error {
		c.audit(ctx, now, store.AuditEntry{
			Action: "Freeze", Author: asked.Author, Reason: asked.Reason,
			Before: describe(shownFreeze(order.Before)), After: describe(shownFreeze(order.After)),
		})
		return nil
	})
	if failed(err) {
		return api.Freeze{}, nil, err
	}
	return *shownFreeze(order.After), shownFreeze(order.Before), err
}

// Unfreeze implements api.Controller.
func (c *control) Unfreeze(ctx context.Context, author string) (*api.Freeze, error) {
	order := &machine.Unfreeze{Author: author}
	err := c.carryOut(ctx, "publishing is no longer frozen, but a restart undoes that", order, func(now time.Time) error {
		if order.Before != nil {
			c.audit(ctx, now, store.AuditEntry{Action: "Unfreeze", Author: author, Before: describe(shownFreeze(order.Before))})
		}
		return nil
	})
	if failed(err) {
		return nil, err
	}
	return shownFreeze(order.Before), err
}

// Frozen implements api.Controller.
func (c *control) Frozen() *api.Freeze { return shownFreeze(c.core.publisher.freeze.Load()) }

func shownFreeze(f *log.Freeze) *api.Freeze {
	if f == nil {
		return nil
	}
	return &api.Freeze{Reason: f.Reason, Author: f.Author, Since: f.Since, Hold: f.Held != nil}
}
