package coordinator

import (
	"time"

	"github.com/rs/zerolog"

	"hdsd/health"
)

// transitionsLogged is how many changes of health are logged in a second; of
// the rest only the number is.
const transitionsLogged = 100

// transitionLog logs changes of health, a bounded number of them.
type transitionLog struct {
	log     zerolog.Logger // of everything
	sampled zerolog.Logger
	left    *leftOut
	told    time.Time // when those left out were last counted in the log
}

// leftOut counts the lines that its sampler gets: those above the burst.
type leftOut struct{ count int }

// Sample implements zerolog.Sampler.
func (l *leftOut) Sample(zerolog.Level) bool {
	l.count++
	return false
}

func newTransitionLog(log zerolog.Logger) *transitionLog {
	left := &leftOut{}
	return &transitionLog{log: log, left: left, sampled: log.Sample(&zerolog.BurstSampler{
		Burst: transitionsLogged, Period: time.Second, NextSampler: left,
	})}
}

func (l *transitionLog) write(t *health.Transition) {
	l.sampled.Info().Str("event", "transition").
		Str("cluster", t.Endpoint.Cluster).Str("address", t.Endpoint.Address).
		Stringer("from", t.From).Stringer("to", t.To).
		Str("reason", t.Reason).Msg("health changed")
}

// count tells how many lines were left out, at most once a second.
func (l *transitionLog) count(now time.Time) {
	if l.left.count == 0 || now.Sub(l.told) < time.Second {
		return
	}
	l.log.Warn().Str("event", "transitions_not_logged").Int("count", l.left.count).
		Msgf("more than %d changes of health in a second: these are in the history only", transitionsLogged)
	l.left.count, l.told = 0, now
}
