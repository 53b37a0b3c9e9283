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
			return status.Errorf(codes.FailedPrecondition, "operators trust or distrust %d checkers, the most allowed: return some to automatic trust with 'hdsd checkers judge'", machine.MaxTrust)
		}
		c.audit(ctx, now, store.AuditEntry{
			Action: "SetTrust", Target: asked.Checker, Author: asked.Author, Reason: asked.Reason,
			Before: describe(shownTrust(asked.Checker, order.Change.Before)), After: describe(shownTrust(asked.Checker, &order.Trust)),
		})
		return nil
	})
	if failed(err) {
		return api.Trust{}, nil, err
	}
	return *shownTrust(asked.Checker, &order.Trust), shownTrust(asked.Checker, order.Change.Before), err
}

// ClearTrust implements api.Controller.
func (c *control) ClearTrust(ctx context.Context, checker, author string) (*api.Trust, error) {
	order := &machine.ClearTrust{Checker: checker, Author: author}
	err := c.carryOut(ctx, "the checker is back to automatic trust, but a restart undoes that", order, func(now time.Time) error {
		if order.Changed {
			c.audit(ctx, now, store.AuditEntry{
				Action: "ClearTrust", Target: checker, Author: author, Before: describe(shownTrust(checker, order.Change.Before)),
			})
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
