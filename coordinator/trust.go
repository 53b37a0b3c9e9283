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
func (c *control) SetTrust(ctx context.Context, asked api.Trust) (now api.Trust, replaced *api.Trust, err error) {
	said, full := store.Trust{Word: storedWord(asked.Trusted), Reason: asked.Reason, Author: asked.Author}, false
	if err := c.core.ask(ctx, func() {
		before, was := c.core.trust[asked.Checker]
		if full = len(c.core.trust) >= mostTrust && !was; full {
			return
		}
		said.Since = time.Now().UTC().Round(0)
		c.core.say(asked.Checker, &said)
		now, replaced = shownTrust(asked.Checker, said), nil
		if was {
			shown := shownTrust(asked.Checker, before)
			replaced = &shown
		}
	}); err != nil {
		return now, nil, err
	}
	if full {
		return now, nil, status.Errorf(codes.FailedPrecondition, "something is said of %d checkers already, which is the most: 'hdsd checkers judge' takes some back", mostTrust)
	}
	if err := c.onDisk(ctx); err != nil {
		return now, nil, status.Errorf(codes.Internal, "it is in force, but a restart may forget it: %v", err)
	}
	return now, replaced, nil
}

// ClearTrust implements api.Controller.
func (c *control) ClearTrust(ctx context.Context, checker, author string) (ended *api.Trust, err error) {
	if err := c.core.ask(ctx, func() {
		if before, was := c.core.trust[checker]; was {
			shown := shownTrust(checker, before)
			ended = &shown
			c.core.unsay(checker, author)
		}
	}); err != nil {
		return nil, err
	}
	if err := c.onDisk(ctx); err != nil {
		return nil, status.Errorf(codes.Internal, "it has ended, but may be in force after a restart: %v", err)
	}
	return ended, nil
}

// Trust implements api.Controller.
func (c *control) Trust(ctx context.Context) (found []api.Trust, err error) {
	err = c.core.ask(ctx, func() {
		for _, id := range slices.Sorted(maps.Keys(c.core.trust)) {
			found = append(found, shownTrust(id, c.core.trust[id]))
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func storedWord(trusted bool) store.Word {
	if trusted {
		return store.Trusted
	}
	return store.Distrusted
}

func shownTrust(checker string, t store.Trust) api.Trust {
	return api.Trust{Checker: checker, Trusted: t.Word == store.Trusted, Reason: t.Reason, Author: t.Author, Since: t.Since}
}

// say has what an operator says of a checker hold.
func (c *core) say(checker string, t *store.Trust) {
	before := c.trust[checker]
	c.trust[checker] = *t
	c.history.SaveTrust(checker, t)
	c.judgeBy(checker)
	c.countDistrusted()
	if t.Word == store.Trusted {
		c.log.Warn().Str("event", "checker_trusted").Str("checker", checker).Str("author", t.Author).Str("reason", t.Reason).
			Str("replaced_author", before.Author).Str("replaced_reason", before.Reason).Msg("a checker is not doubted any more, by an operator")
		return
	}
	c.log.Warn().Str("event", "checker_distrusted").Str("checker", checker).Str("author", t.Author).Str("reason", t.Reason).
		Str("replaced_author", before.Author).Str("replaced_reason", before.Reason).Msg("no vote of a checker counts any more, by an operator")
}

// unsay leaves it to the judge again whether a checker is believed.
func (c *core) unsay(checker, author string) {
	before := c.trust[checker]
	delete(c.trust, checker)
	c.history.SaveTrust(checker, nil)
	c.log.Warn().Str("event", "checker_judged").Str("checker", checker).Str("author", author).
		Str("said_by", before.Author).Str("reason", before.Reason).Msg("whether this checker is believed is up to hdsd again")
	c.judgeBy(checker)
	c.countDistrusted()
}

// judgeBy has the judge follow what is said of a checker.
func (c *core) judgeBy(checker string) {
	t := c.trust[checker]
	words := map[store.Word]aggregate.Word{store.Distrusted: aggregate.Distrusted, store.Trusted: aggregate.Trusted}
	c.judge.Instruct(checker, words[t.Word], fmt.Sprintf("%s (%s)", t.Reason, t.Author))
	c.doubtStirred = true
}

func (c *core) countDistrusted() {
	distrusted := 0
	for _, t := range c.trust {
		if t.Word == store.Distrusted {
			distrusted++
		}
	}
	c.metrics.distrusted.Set(float64(distrusted))
}

// stayTrusting has hold what was said before the start.
func (c *core) stayTrusting(said map[string]store.Trust) {
	if len(said) == 0 {
		return
	}
	c.trust = said
	for checker := range said {
		c.judgeBy(checker)
	}
	c.countDistrusted()
	c.log.Warn().Str("event", "still_judged").Int("count", len(said)).Msg("operators said which checkers to believe: hdsd checkers shows it")
}
