package coordinator

import (
	"hdsd/coordinator/decision"
	"hdsd/store"
)

// restore takes up what the store has, before the first event. Nothing moves until
// the time to settle has passed, which starts with begin.
func (c *core) restore(s store.State) {
	c.fleet.Restore(s.Plan)
	for name, trials := range s.Trials {
		c.rollout.Restore(name, recordOf(trials))
	}
	c.rulings.Restore(s)
	c.announceRestored(&s)
	c.restoreTrust(s.Trust)
}

// announceRestored logs that a freeze and overrides go on.
func (c *core) announceRestored(s *store.State) {
	if f := s.Freeze; f != nil {
		c.decisions.frozen.Store(f)
		c.metrics.frozen.Set(1)
		c.log.Warn().Str("event", "still_frozen").Str("author", f.Author).Str("reason", f.Reason).
			Time("since", f.Since).Stringer("publish", decision.PublicationUnder(f)).Msg("still frozen, as before the start")
	}
	if n := len(s.Overrides); n > 0 {
		c.log.Warn().Str("event", "still_overridden").Int("count", n).Msg("overrides are in force, as before the start: hdsd override list shows them")
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
