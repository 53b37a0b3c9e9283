package coordinator

import (
	"github.com/rs/zerolog"

	"hdsd/aggregate"
)

// judgeLog logs and counts what the aggregator finds, apart from verdicts.
type judgeLog struct {
	*zerolog.Logger
	metrics *metrics
}

func (l judgeLog) write(e *aggregate.Effects) {
	for i := range e.Doubts {
		l.doubt(&e.Doubts[i])
	}
	for i := range e.Blindness {
		l.blindness(&e.Blindness[i])
	}
	for i := range e.MassFailures {
		l.massFailure(&e.MassFailures[i])
	}
}

func (l judgeLog) doubt(c *aggregate.DoubtChange) {
	count := l.metrics.doubtedCheckers
	if c.Checker == "" {
		count = l.metrics.doubtedPaths
	}
	if c.Doubted {
		count.Inc()
	} else {
		count.Dec()
	}
	switch {
	case c.Checker != "" && c.Doubted:
		l.Warn().Str("event", "checker_doubted").Str("checker", c.Checker).
			Msg("a checker is not believed when it says down: " + c.Reason)
	case c.Checker != "":
		l.Info().Str("event", "checker_believed").Str("checker", c.Checker).Msg("a checker is believed again")
	case c.Doubted:
		l.Warn().Str("event", "path_doubted").Str("from", c.From).Str("to", c.To).
			Msg("checkers of one zone are not believed when they say down of another: " + c.Reason)
	default:
		l.Info().Str("event", "path_believed").Str("from", c.From).Str("to", c.To).
			Msg("checkers of one zone are believed again about another")
	}
}

func (l judgeLog) blindness(c *aggregate.BlindnessChange) {
	if c.Blind {
		l.metrics.blindCheckers.Inc()
		l.Warn().Str("event", "checker_blind").Str("checker", c.Checker).Msg("a checker does not see outages: " + c.Reason)
	} else {
		l.metrics.blindCheckers.Dec()
		l.Info().Str("event", "checker_sees").Str("checker", c.Checker).Msg("a checker is not taken to be blind any more: " + c.Reason)
	}
}

func (l judgeLog) massFailure(f *aggregate.MassFailure) {
	if f.Over {
		l.metrics.massFailures.Dec()
		l.Warn().Str("event", "mass_failure_over").Str("cluster", f.Cluster).
			Msg("the alarm for a cluster is over: " + f.Reason)
		return
	}
	l.metrics.massFailures.Inc()
	l.metrics.massFailuresSeen.Inc()
	l.Error().Str("event", "mass_failure").Str("cluster", f.Cluster).
		Msg("much of a cluster seems to fail at once, which waits for verdict.mass_failure.hold: " + f.Reason)
}
