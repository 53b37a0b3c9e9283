package coordinator

import (
	"github.com/rs/zerolog"

	"hdsd/aggregate"
)

// judgeLog logs the findings about votes.
type judgeLog struct {
	*zerolog.Logger
	names *outsideNames
}

// write logs findings.
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
	for i := range e.Divided {
		l.divided(&e.Divided[i])
	}
}

func (l judgeLog) doubt(c *aggregate.DoubtChange) {
	switch {
	case c.Checker != "" && c.Doubted:
		l.Warn().Str("event", "checker_doubted").Str("checker", c.Checker).
			Msg("a checker is doubted, so its votes of down do not count: " + c.Reason)
	case c.Checker != "":
		l.Info().Str("event", "checker_believed").Str("checker", c.Checker).Msg("a checker is no longer doubted")
	case c.Doubted:
		l.Warn().Str("event", "path_doubted").Str("from", c.From).Str("to", c.To).
			Msg("a path between zones is doubted, so votes of down over it do not count: " + c.Reason)
	default:
		l.Info().Str("event", "path_believed").Str("from", c.From).Str("to", c.To).
			Msg("a path between zones is no longer doubted")
	}
}

func (l judgeLog) blindness(c *aggregate.BlindnessChange) {
	if c.Blind {
		l.Warn().Str("event", "checker_blind").Str("checker", c.Checker).Msg("a checker is blind: " + c.Reason)
	} else {
		l.Info().Str("event", "checker_sees").Str("checker", c.Checker).Msg("a checker is no longer blind: " + c.Reason)
	}
}

func (l judgeLog) divided(d *aggregate.DividedChange) {
	if d.Over {
		l.Info().Str("event", "zone_divided_over").Str("region", d.Zone.Region).Str("zone", d.Zone.Zone).
			Msg("a zone's own checkers and those elsewhere agree again on its endpoints")
		return
	}
	l.Warn().Str("event", "zone_divided").Str("region", d.Zone.Region).Str("zone", d.Zone.Zone).
		Msg("a zone's own checkers contradict those elsewhere on many of its endpoints: each gets a second checker of its own zone")
}

func (l judgeLog) massFailure(f *aggregate.MassFailure) {
	if f.Over {
		l.Warn().Str("event", "mass_failure_over").EmbedObject(l.names.logFields(f.Cluster)).
			Msg("a mass failure is over: " + f.Reason)
		return
	}
	l.Error().Str("event", "mass_failure").EmbedObject(l.names.logFields(f.Cluster)).
		Msg("more than half of a cluster seems to fail at once, so its verdicts wait for verdict.mass_failure.hold: " + f.Reason)
}
