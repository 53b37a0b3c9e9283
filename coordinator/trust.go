package coordinator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/aggregate"
	"hdsd/api"
	"hdsd/coordinator/decision"
	"hdsd/store"
)

// maxTrust is how many checkers operators can trust or distrust.
const maxTrust = 10_000

// SetTrust implements api.Controller.
func (c *control) SetTrust(ctx context.Context, asked api.Trust) (api.Trust, *api.Trust, error) {
	said := store.Trust{Level: storedTrust(asked.Trusted), Reason: asked.Reason, Author: asked.Author}
	var change decision.TrustChange
	err := c.carryOut(ctx, "the checker's trust is set, but a restart undoes that", func() (err error) {
		said.Since = time.Now().UTC().Round(0)
		if change, err = c.core.trust.set(asked.Checker, &said); err != nil {
			return err
		}
		c.core.applyTrust(change)
		c.record(ctx, said.Since, store.AuditEntry{
			Action: "SetTrust", Target: asked.Checker, Author: asked.Author, Reason: asked.Reason,
			Before: told(shownTrust(asked.Checker, change.Before)), After: told(shownTrust(asked.Checker, &said)),
		})
		return nil
	})
	if failed(err) {
		return api.Trust{}, nil, err
	}
	return *shownTrust(asked.Checker, &said), shownTrust(asked.Checker, change.Before), err
}

// ClearTrust implements api.Controller.
func (c *control) ClearTrust(ctx context.Context, checker, author string) (*api.Trust, error) {
	var change decision.TrustChange
	err := c.carryOut(ctx, "the checker is back to automatic trust, but a restart undoes that", func() error {
		var changed bool
		if change, changed = c.core.trust.clear(checker, author); changed {
			c.core.applyTrust(change)
			c.record(ctx, time.Now(), store.AuditEntry{
				Action: "ClearTrust", Target: checker, Author: author, Before: told(shownTrust(checker, change.Before)),
			})
		}
		return nil
	})
	if failed(err) {
		return nil, err
	}
	return shownTrust(checker, change.Before), err
}

// Trust implements api.Controller.
func (c *control) Trust(ctx context.Context) ([]api.Trust, error) {
	var found []api.Trust
	if err := c.core.ask(ctx, func() {
		for _, id := range slices.Sorted(maps.Keys(c.core.trust)) {
			found = append(found, *shownTrust(id, c.core.trust.of(id)))
		}
	}); err != nil {
		return nil, err
	}
	return found, nil
}

func storedTrust(trusted bool) store.TrustLevel {
	if trusted {
		return store.Trusted
	}
	return store.Distrusted
}

func shownTrust(checker string, t *store.Trust) *api.Trust {
	if t == nil {
		return nil
	}
	return &api.Trust{Checker: checker, Trusted: t.Level == store.Trusted, Reason: t.Reason, Author: t.Author, Since: t.Since}
}

// trust holds what operators say of checkers.
type trust map[string]store.Trust

// of returns what an operator says of a checker, or nil.
func (t trust) of(checker string) *store.Trust {
	if said, ok := t[checker]; ok {
		return &said
	}
	return nil
}

// set sets what an operator says of a checker.
func (t trust) set(checker string, said *store.Trust) (change decision.TrustChange, err error) {
	before := t.of(checker)
	if before == nil && len(t) >= maxTrust {
		return change, status.Errorf(codes.FailedPrecondition, "operators trust or distrust %d checkers, the most allowed: return some to automatic trust with 'hdsd checkers judge'", maxTrust)
	}
	t[checker] = *said
	return decision.TrustChange{Checker: checker, Before: before, After: said, By: said.Author}, nil
}

// clear returns a checker to automatic trust, and reports whether that changes anything.
func (t trust) clear(checker, author string) (change decision.TrustChange, changed bool) {
	before := t.of(checker)
	delete(t, checker)
	return decision.TrustChange{Checker: checker, Before: before, By: author}, before != nil
}

// distrusted returns how many checkers operators distrust.
func (t trust) distrusted() (count int) {
	for _, said := range t {
		if said.Level == store.Distrusted {
			count++
		}
	}
	return count
}

// applyTrust makes the votes of a checker count as an operator says, and records that.
func (c *core) applyTrust(change decision.TrustChange) {
	c.instruct(change.Checker)
	c.appendDecisions([]decision.Decision{{Trust: &change}})
}

// instruct tells the aggregator what an operator says of a checker.
func (c *core) instruct(checker string) {
	said := c.trust[checker]
	levels := map[store.TrustLevel]aggregate.OperatorTrust{store.Distrusted: aggregate.Distrusted, store.Trusted: aggregate.Trusted}
	c.judge.SetTrust(checker, levels[said.Level], fmt.Sprintf("%s (%s)", said.Reason, said.Author))
	c.fleet.Reconsider()
	c.metrics.votes.distrusted.Set(float64(c.trust.distrusted()))
}
