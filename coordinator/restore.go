package coordinator

import (
	"maps"

	"hdsd/health"
	"hdsd/store"
)

// restore takes up what the store has, before the first event. Nothing moves until
// the time to settle has passed, which starts with begin.
func (c *core) restore(s store.State) {
	c.fleet.Restore(s.Plan)
	c.restoreTrials(s.Trials)
	c.restoreHealth(s.Current, s.Voted)
	c.restoreFreeze(s.Freeze)
	c.restoreOverrides(s.Overrides)
	c.restoreTrust(s.Trust)
}

// restoreHealth keeps the last known health of each endpoint until a source has it.
func (c *core) restoreHealth(last map[health.Hash]store.Held, voted map[health.Hash]health.Verdict) {
	maps.DeleteFunc(last, func(_ health.Hash, held store.Held) bool { return parted(&held.Verdict) })
	c.last, c.voted = last, voted
}

// restoreFreeze goes on with a freeze, before anything is published.
func (c *core) restoreFreeze(f *store.Freeze) {
	if f == nil {
		return
	}
	c.frozen.Store(f)
	c.metrics.frozen.Set(1)
	c.log.Warn().Str("event", "still_frozen").Str("author", f.Author).Str("reason", f.Reason).
		Time("since", f.Since).Stringer("publish", publishing(f)).Msg("still frozen, as before the start")
}

// restoreOverrides puts the stored overrides in force again, before anything is
// published.
func (c *core) restoreOverrides(stored []store.Override) {
	for _, o := range stored {
		c.overrides.put(&override{Override: o})
	}
	if len(stored) > 0 {
		c.log.Warn().Str("event", "still_overridden").Int("count", len(stored)).Msg("overrides are in force, as before the start: hdsd override list shows them")
	}
}

// restoreTrust goes by what operators said of checkers before the start.
func (c *core) restoreTrust(said map[string]store.Trust) {
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
