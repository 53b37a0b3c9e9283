package coordinator

import "hdsd/aggregate"

// tellDoubts tells whom the judge began, or ceased, to doubt.
func (c *core) tellDoubts(changes []aggregate.DoubtChange) {
	for _, s := range changes {
		count := c.metrics.doubtedCheckers
		if s.Checker == "" {
			count = c.metrics.doubtedPaths
		}
		c.fleet.Reconsider()
		if s.Doubted {
			count.Inc()
		} else {
			count.Dec()
		}
		switch {
		case s.Checker != "" && s.Doubted:
			c.log.Warn().Str("event", "checker_doubted").Str("checker", s.Checker).
				Msg("a checker is not believed when it says down: " + s.Reason)
		case s.Checker != "":
			c.log.Info().Str("event", "checker_believed").Str("checker", s.Checker).Msg("a checker is believed again")
		case s.Doubted:
			c.log.Warn().Str("event", "path_doubted").Str("from", s.From).Str("to", s.To).
				Msg("checkers of one zone are not believed when they say down of another: " + s.Reason)
		default:
			c.log.Info().Str("event", "path_believed").Str("from", s.From).Str("to", s.To).
				Msg("checkers of one zone are believed again about another")
		}
	}
}

// tellBlindness tells who became blind, or ceased to be.
func (c *core) tellBlindness(changes []aggregate.BlindnessChange) {
	for _, b := range changes {
		c.fleet.Reconsider()
		if b.Blind {
			c.metrics.blindCheckers.Inc()
			c.log.Warn().Str("event", "checker_blind").Str("checker", b.Checker).Msg("a checker does not see outages: " + b.Reason)
		} else {
			c.metrics.blindCheckers.Dec()
			c.log.Info().Str("event", "checker_sees").Str("checker", b.Checker).Msg("a checker is not taken to be blind any more: " + b.Reason)
		}
	}
}
