package coordinator

import (
	"time"

	"github.com/rs/zerolog"

	"hdsd/coordinator/fleet"
)

// fleetLog logs what happens to checkers.
type fleetLog struct {
	zerolog.Logger
	grace time.Duration
}

// namedCheckers is how many checkers one line names.
const namedCheckers = 10

// warn logs what happened to some checkers.
func (l fleetLog) warn(event string, checkers []string, text string) {
	l.Warn().Str("event", event).Int("count", len(checkers)).Strs("checkers", checkers[:min(len(checkers), namedCheckers)]).Msg(text)
}

func (l fleetLog) write(events []fleet.Event) {
	for i := range events {
		switch e := &events[i]; e.Kind {
		case fleet.Lost:
			l.Warn().Str("event", "checker_lost").Str("checker", e.Checkers[0]).Dur("grace", l.grace).
				Msg("checker lost; its seat is kept for the grace period")
		case fleet.SeatsGivenUp:
			l.warn("seats_given_up", e.Checkers, "checkers did not come back in time; others take over")
		case fleet.StoppedReporting:
			l.warn("checkers_quiet", e.Checkers, "checkers are connected and have stopped reporting")
		case fleet.SilentReplaced:
			l.warn("silent_replaced", e.Checkers, "checkers report nothing of what they were sent: substitutes check it")
		case fleet.SilentGivenUp:
			l.warn("silent_given_up", e.Checkers, "checkers stay without work until they connect anew or report: others have taken over")
		case fleet.SilentHeld:
			l.warn("silent_held", e.Checkers, "checkers report nothing of what they were sent: they keep it, since fewer than two others report for each of them, or none for a single one")
		case fleet.DoubtedReplaced:
			l.warn("doubted_replaced", e.Checkers, "checkers are doubted: substitutes check their endpoints beside them")
		case fleet.BlindOutnumbered:
			l.warn("blind_outnumbered", e.Checkers, "checkers are blind: substitutes check beside them where others do not outnumber them")
		case fleet.DoubtedHeld:
			l.Warn().Str("event", "doubted_held").Int("count", len(e.Checkers)).Strs("checkers", e.Checkers[:min(len(e.Checkers), namedCheckers)]).
				Int("believed", e.Trust.Believed).Int("doubted", e.Trust.Doubted).Int("distrusted", e.Trust.Distrusted).
				Int("blind", e.Trust.Blind).Int("away", e.Trust.Away).
				Msg("checkers are doubted and get substitutes only where too few others are believed, since half of the fleet cannot be relied on")
		case fleet.DoubtedHeldOver:
			l.Info().Str("event", "doubted_held_over").Msg("no doubted checker is without substitutes for that reason any more")
		}
	}
}
