package coordinator

import (
	"time"

	"github.com/rs/zerolog"

	"hdsd/health"
)

// maxTransitionsLogged limits the logged transitions in a second. A line counts the rest.
const maxTransitionsLogged = 100

// transitionLog logs a bounded number of transitions.
type transitionLog struct {
	log     zerolog.Logger
	bounded zerolog.Logger
	names   *outsideNames
	omitted *omitted
	logged  time.Time // time of the latest line about omitted transitions
}

// omitted counts the lines beyond the limit.
type omitted struct{ count int }

// Sample implements zerolog.Sampler.
func (o *omitted) Sample(zerolog.Level) bool {
	o.count++
	return false
}

func newTransitionLog(log zerolog.Logger, names *outsideNames) *transitionLog {
	rest := &omitted{}
	return &transitionLog{log: log, names: names, omitted: rest, bounded: log.Sample(&zerolog.BurstSampler{
		Burst: maxTransitionsLogged, Period: time.Second, NextSampler: rest,
	})}
}

// write logs a transition, unless there are too many.
func (l *transitionLog) write(t *health.Transition) {
	locality := &t.Endpoint.Locality
	l.bounded.Info().Str("event", "transition").
		EmbedObject(l.names.logFields(t.Endpoint.Cluster)).Str("address", t.Endpoint.Address).
		Str("region", locality.Region).Str("zone", locality.Zone).Str("sub_zone", locality.SubZone).
		Stringer("from", t.From).Stringer("to", t.To).
		Str("reason", t.Reason).Msg("health changed")
}

// logOmitted logs the number of omitted transitions, at most once a second.
func (l *transitionLog) logOmitted(now time.Time) {
	if l.omitted.count == 0 || now.Sub(l.logged) < time.Second {
		return
	}
	l.log.Warn().Str("event", "transitions_not_logged").Int("count", l.omitted.count).
		Msgf("more than %d transitions in a second: the history has these", maxTransitionsLogged)
	l.omitted.count, l.logged = 0, now
}
