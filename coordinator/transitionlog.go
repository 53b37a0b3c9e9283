package coordinator

import (
	"time"

	"github.com/rs/zerolog"

	"hdsd/health"
)

// maxTransitionsLogged is how many transitions the log shows in a second. It only
// counts the rest.
const maxTransitionsLogged = 100

// transitionLog logs a bounded number of transitions.
type transitionLog struct {
	log     zerolog.Logger
	bounded zerolog.Logger
	outside *outsideNames
	omitted *omitted
	counted time.Time // when the omitted ones were last logged
}

// omitted counts the lines above the bound.
type omitted struct{ count int }

// Sample implements zerolog.Sampler.
func (o *omitted) Sample(zerolog.Level) bool {
	o.count++
	return false
}

func newTransitionLog(log zerolog.Logger, outside *outsideNames) *transitionLog {
	rest := &omitted{}
	return &transitionLog{log: log, outside: outside, omitted: rest, bounded: log.Sample(&zerolog.BurstSampler{
		Burst: maxTransitionsLogged, Period: time.Second, NextSampler: rest,
	})}
}

func (l *transitionLog) write(t *health.Transition) {
	in := &t.Endpoint.Locality
	l.bounded.Info().Str("event", "transition").
		EmbedObject(l.outside.logged(t.Endpoint.Cluster)).Str("address", t.Endpoint.Address).
		Str("region", in.Region).Str("zone", in.Zone).Str("sub_zone", in.SubZone).
		Stringer("from", t.From).Stringer("to", t.To).
		Str("reason", t.Reason).Msg("health changed")
}

// logOmitted logs how many transitions were omitted, at most once a second.
func (l *transitionLog) logOmitted(now time.Time) {
	if l.omitted.count == 0 || now.Sub(l.counted) < time.Second {
		return
	}
	l.log.Warn().Str("event", "transitions_not_logged").Int("count", l.omitted.count).
		Msgf("more than %d transitions in a second: the history has these", maxTransitionsLogged)
	l.omitted.count, l.counted = 0, now
}
