package coordinator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/coordinator/query"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/peer/access"
	"hdsd/store"
)

// SetTrust implements api.Controller.
func (c *control) SetTrust(ctx context.Context, asked api.Trust) (api.Trust, *api.Trust, error) {
	order := &machine.SetTrust{Checker: asked.Checker, Trust: log.Trust{Level: storedTrust(asked.Trusted), Reason: asked.Reason, Author: asked.Author}}
	err := c.carryOut(ctx, "the checker's trust is set, but a restart undoes that", order, func(now time.Time) error {
		if errors.Is(order.Err, machine.ErrTrustFull) {
			return trustFull()
		}
		c.auditOrder(ctx, now, trustAudit(&order.Change))
		return nil
	})
	if failed(err) {
		return api.Trust{}, nil, err
	}
	return *shownTrust(asked.Checker, &order.Trust), shownTrust(asked.Checker, order.Change.Before), err
}

// trustAudit describes a change of trust for the audit.
func trustAudit(c *log.TrustChange) store.AuditEntry {
	e := store.AuditEntry{Action: "ClearTrust", Target: c.Checker, Author: c.By, Before: describe(shownTrust(c.Checker, c.Before))}
	if c.After != nil {
		e.Action, e.Reason, e.After = "SetTrust", c.After.Reason, describe(shownTrust(c.Checker, c.After))
	}
	return e
}

// trustFull is the error of an order to trust or distrust too many checkers.
func trustFull() error {
	return status.Errorf(codes.FailedPrecondition, "operators trust or distrust %d checkers, the most allowed: return some to automatic trust with 'hdsd checkers judge'", machine.MaxTrust)
}

// ClearTrust implements api.Controller.
func (c *control) ClearTrust(ctx context.Context, checker, author string) (*api.Trust, error) {
	order := &machine.ClearTrust{Checker: checker, Author: author}
	err := c.carryOut(ctx, "the checker is back to automatic trust, but a restart undoes that", order, func(now time.Time) error {
		if order.Changed {
			c.auditOrder(ctx, now, trustAudit(&order.Change))
		}
		return nil
	})
	if failed(err) {
		return nil, err
	}
	return shownTrust(checker, order.Change.Before), err
}

// Trust implements api.Controller.
func (c *control) Trust(ctx context.Context) ([]api.Trust, error) {
	var found []api.Trust
	if err := c.core.inspect(ctx, func() {
		for _, id := range slices.Sorted(maps.Keys(c.core.Trust)) {
			found = append(found, *shownTrust(id, c.core.Trust.Get(id)))
		}
	}); err != nil {
		return nil, err
	}
	if !access.FromContext(ctx).Clusters().All() {
		for i := range found {
			found[i].Reason = query.HiddenReason
		}
	}
	return found, nil
}

// storedTrust converts trust to the form of the store.
func storedTrust(trusted bool) log.TrustLevel {
	if trusted {
		return log.Trusted
	}
	return log.Distrusted
}

// shownTrust converts trust for clients; nil stays nil.
func shownTrust(checker string, t *log.Trust) *api.Trust {
	if t == nil {
		return nil
	}
	return &api.Trust{Checker: checker, Trusted: t.Level == log.Trusted, Reason: t.Reason, Author: t.Author, Since: t.Since}
}
