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
		c.auditOrder(ctx, now, freezeAudit(&log.FreezeChange{Before: order.Before, After: order.After}))
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
			c.auditOrder(ctx, now, freezeAudit(&log.FreezeChange{Before: order.Before, By: author}))
		}
		return nil
	})
	if failed(err) {
		return nil, err
	}
	return shownFreeze(order.Before), err
}

// freezeAudit describes a freeze, or its end, for the audit.
func freezeAudit(f *log.FreezeChange) store.AuditEntry {
	if f.After == nil {
		return store.AuditEntry{Action: "Unfreeze", Author: f.By, Before: describe(shownFreeze(f.Before))}
	}
	return store.AuditEntry{
		Action: "Freeze", Author: f.After.Author, Reason: f.After.Reason, Before: describe(shownFreeze(f.Before)), After: describe(shownFreeze(f.After)),
	}
}

// Frozen implements api.Controller.
func (c *control) Frozen() *api.Freeze { return shownFreeze(c.core.publisher.freeze.Load()) }

func shownFreeze(f *log.Freeze) *api.Freeze {
	if f == nil {
		return nil
	}
	return &api.Freeze{Reason: f.Reason, Author: f.Author, Since: f.Since, Hold: f.Held != nil}
}
