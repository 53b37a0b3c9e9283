package coordinator

import (
	"time"

	"github.com/rs/zerolog"

	"hdsd/fleet"
)

// fleetLog logs events of the fleet.
type fleetLog struct {
	zerolog.Logger
	grace time.Duration
}

// maxNamedCheckers limits the checkers that a line names.
const maxNamedCheckers = 10

// warn logs an event of several checkers.
func (l fleetLog) warn(event string, checkers []string, text string) {
	l.Warn().Str("event", event).Int("count", len(checkers)).Strs("checkers", checkers[:min(len(checkers), maxNamedCheckers)]).Msg(text)
}

// write logs events.
func (l fleetLog) write(events []fleet.Event) {
	for i := range events {
		switch e := &events[i]; e.Kind {
		case fleet.Lost:
			l.Warn().Str("event", "checker_lost").Str("checker", e.Checkers[0]).Dur("grace", l.grace).
				Msg("a checker is lost; its seats are kept for the grace period")
		case fleet.SeatsGivenUp:
			l.warn("seats_given_up", e.Checkers, "lost checkers did not come back in time; others take over their endpoints")
		case fleet.StoppedReporting:
			l.warn("checkers_quiet", e.Checkers, "checkers are connected and have stopped reporting")
		case fleet.SilentReplaced:
			l.warn("silent_replaced", e.Checkers, "checkers are silent: substitutes check their endpoints")
		case fleet.SilentGivenUp:
			l.warn("silent_given_up", e.Checkers, "others have taken over the endpoints of silent checkers, which get no work until they reconnect or report")
		case fleet.LostHeld:
			l.warn("lost_held", e.Checkers, "many checkers are lost: the others keep what they have, so that they are not lost in turn")
		case fleet.SilentHeld:
			l.warn("silent_held", e.Checkers, "silent checkers keep their endpoints: two others must report for each of them, or one if only one is silent")
		case fleet.DoubtedReplaced:
			l.warn("doubted_replaced", e.Checkers, "checkers are doubted: substitutes check their endpoints too")
		case fleet.BlindOutnumbered:
			l.warn("blind_outnumbered", e.Checkers, "checkers are blind: substitutes check their endpoints too, where others do not outnumber them")
		case fleet.DoubtedHeld:
			l.Warn().Str("event", "doubted_held").Int("count", len(e.Checkers)).Strs("checkers", e.Checkers[:min(len(e.Checkers), maxNamedCheckers)]).
				Int("believed", e.Trust.Believed).Int("doubted", e.Trust.Doubted).Int("distrusted", e.Trust.Distrusted).
				Int("blind", e.Trust.Blind).Int("away", e.Trust.Away).
				Msg("doubted checkers get substitutes only where fewer than two believed ones are left, since half of the fleet cannot be relied on")
		case fleet.NewcomersEstablished:
			l.Info().Str("event", "checkers_established").Int("count", len(e.Checkers)).Strs("checkers", e.Checkers[:min(len(e.Checkers), maxNamedCheckers)]).
				Msg("checkers are established: they have agreed with others for long enough, or were there first")
		case fleet.NewcomerLost:
			l.Info().Str("event", "newcomer_lost").Str("checker", e.Checkers[0]).Msg("a checker on probation is gone; it had no seats")
		case fleet.StandInsEnded:
			l.warn("stand_ins_ended", e.Checkers, "checkers are on probation again: one that was established before them is back")
		case fleet.NoCheckers:
			l.Error().Str("event", "no_checkers").
				Msg("no checker is connected: nothing is checked, and health stays what it was last; connect a checker")
		case fleet.NoCheckersOver:
			l.Info().Str("event", "no_checkers_over").Dur("lasted", e.Lasted).Msg("a checker is connected again")
		case fleet.DoubtedHeldOver:
			l.Info().Str("event", "doubted_held_over").Msg("no doubted checker lacks substitutes for that reason any more")
		}
	}
}
