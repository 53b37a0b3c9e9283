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
	"hdsd/store"
)

// mostTrust is of how many checkers something can be said.
const mostTrust = 10_000

// SetTrust implements api.Controller.
func (c *control) SetTrust(ctx context.Context, asked api.Trust) (api.Trust, *api.Trust, error) {
	said := store.Trust{Level: storedTrust(asked.Trusted), Reason: asked.Reason, Author: asked.Author}
	var replaced *store.Trust
	if err := c.carryOut(ctx, "it is in force, but a restart may forget it", func() (err error) {
		said.Since = time.Now().UTC().Round(0)
		replaced, err = c.core.say(asked.Checker, &said)
		return err
	}); err != nil {
		return api.Trust{}, nil, err
	}
	return *shownTrust(asked.Checker, &said), shownTrust(asked.Checker, replaced), nil
}

// ClearTrust implements api.Controller.
func (c *control) ClearTrust(ctx context.Context, checker, author string) (*api.Trust, error) {
	var ended *store.Trust
	if err := c.carryOut(ctx, "it has ended, but may be in force after a restart", func() error {
		ended = c.core.unsay(checker, author)
		return nil
	}); err != nil {
		return nil, err
	}
	return shownTrust(checker, ended), nil
}

// Trust implements api.Controller.
func (c *control) Trust(ctx context.Context) ([]api.Trust, error) {
	var found []api.Trust
	if err := c.core.ask(ctx, func() {
		for _, id := range slices.Sorted(maps.Keys(c.core.trust)) {
			found = append(found, *shownTrust(id, c.core.said(id)))
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

// said is what an operator says of a checker, nil for nothing.
func (c *core) said(checker string) *store.Trust {
	if t, ok := c.trust[checker]; ok {
		return &t
	}
	return nil
}

// say has what an operator says of a checker hold, and gives what that replaces.
func (c *core) say(checker string, t *store.Trust) (before *store.Trust, err error) {
	if before = c.said(checker); before == nil && len(c.trust) >= mostTrust {
		return nil, status.Errorf(codes.FailedPrecondition, "something is said of %d checkers already, which is the most: 'hdsd checkers judge' takes some back", mostTrust)
	}
	replaced := c.trust[checker]
	if t.Level == store.Trusted {
		c.log.Warn().Str("event", "checker_trusted").Str("checker", checker).Str("author", t.Author).Str("reason", t.Reason).
			Str("replaced_author", replaced.Author).Str("replaced_reason", replaced.Reason).Msg("a checker is not doubted any more, by an operator")
	} else {
		c.log.Warn().Str("event", "checker_distrusted").Str("checker", checker).Str("author", t.Author).Str("reason", t.Reason).
			Str("replaced_author", replaced.Author).Str("replaced_reason", replaced.Reason).Msg("no vote of a checker counts any more, by an operator")
	}
	c.trust[checker] = *t
	c.history.SaveTrust(checker, t)
	c.judgeBy(checker)
	c.countDistrusted()
	return before, nil
}

// unsay leaves it to the judge again whether a checker is believed, and gives what
// was said of it; nil for nothing.
func (c *core) unsay(checker, author string) (before *store.Trust) {
	if before = c.said(checker); before == nil {
		return nil
	}
	delete(c.trust, checker)
	c.history.SaveTrust(checker, nil)
	c.log.Warn().Str("event", "checker_judged").Str("checker", checker).Str("author", author).
		Str("said_by", before.Author).Str("reason", before.Reason).Msg("whether this checker is believed is up to hdsd again")
	c.judgeBy(checker)
	c.countDistrusted()
	return before
}

// judgeBy has the judge follow what is said of a checker.
func (c *core) judgeBy(checker string) {
	t := c.trust[checker]
	levels := map[store.TrustLevel]aggregate.OperatorTrust{store.Distrusted: aggregate.Distrusted, store.Trusted: aggregate.Trusted}
	c.judge.SetTrust(checker, levels[t.Level], fmt.Sprintf("%s (%s)", t.Reason, t.Author))
	c.fleet.Reconsider()
}

func (c *core) countDistrusted() {
	distrusted := 0
	for _, t := range c.trust {
		if t.Level == store.Distrusted {
			distrusted++
		}
	}
	c.metrics.distrusted.Set(float64(distrusted))
}
