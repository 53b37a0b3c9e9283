package aggregate

import (
	"fmt"
	"time"

	"hdsd/health"
)

// Kind is the way in which votes become a verdict. A rule sees only votes that count.
type Kind uint8

// The kinds of rule.
const (
	Majority     Kind = iota // the side with more votes
	Any                      // down if any vote is, otherwise up
	All                      // down if all votes are, otherwise up
	AtLeast                  // down if at least Rule.AtLeast votes are; otherwise up if any vote is
	Share                    // up if more than Rule.Share of the votes are, otherwise down
	ZoneMajority             // the side with more zones; each zone takes the majority of its own votes
	Score                    // up by majority; down by majority if its runs of downs also add up to enough: 5 for 3 voters
)

// Unobserved determines an endpoint's status when no vote counts.
type Unobserved uint8

// The kinds of Unobserved.
const (
	Hold          Unobserved = iota // the last verdict stays
	TurnUnknown                     // it is UNKNOWN
	TurnUnhealthy                   // it is UNHEALTHY
)

// Rule determines how the votes on an endpoint become its verdict. The zero Rule is Majority
// and Hold.
type Rule struct {
	Kind       Kind
	AtLeast    int     // for AtLeast
	Share      float64 // for Share; at least 0, and less than 1
	Unobserved Unobserved

	// DegradedWhen holds HTTP status codes; a vote of UNHEALTHY with one of them
	// counts as DEGRADED, if its checker has health.FreshCodes.
	DegradedWhen Codes

	// Passing holds the codes of DegradedWhen with which a probe passes. After a down, an
	// endpoint that has yet to pass Timing.HealthyThreshold probes is reported like a degraded
	// one. So its vote stays down until it must have passed that many.
	Passing Codes

	// WarmUp is the time after a pair's first vote in which its downs do not count. Default:
	// derived from Timing.
	WarmUp time.Duration

	// Limits determine which votes count.
	Limits BeliefLimits

	// Damping holds down endpoints that flap.
	Damping Damping

	// MassHold is the time for which downs wait when one round would take more than half of a
	// cluster down. Downs that all votes or all zones agree on do not wait. With 0, no down
	// waits.
	MassHold time.Duration

	// QuorumHold is the time after a loss of checkers in which their votes count as ups against
	// a down. Votes is the planned number of votes on an endpoint; no more count as lost. With
	// 0, none does.
	QuorumHold time.Duration
	Votes      int
}

// outcome is the way in which a rule arrived at its status.
type outcome uint8

const (
	decided     outcome = iota
	tied                // the votes come to neither side: the last verdict holds
	outnumbered         // the lost votes could prevent the down: the last verdict holds
	unsettled           // the awaited votes could reverse the result: the last verdict holds
	unobserved          // no vote counts: the last verdict holds
	lapsed              // no vote counts: the last verdict does not hold
)

// decide returns the status given by a tally.
//
// It computes the results with all awaited votes up, and with all of them down. So the first
// checkers to report after a start decide only if the others cannot reverse the result.
// Otherwise two of three checkers that see an endpoint down would lose to the third while they
// warm up. For the same reason, a verdict does not change from UNHEALTHY to TIMEOUT while a
// vote is awaited.
func (r *Rule) decide(t *tally, last health.Status) (health.Status, outcome) {
	if t.up+t.down == 0 {
		if r.Unobserved == Hold || t.awaited > 0 || t.holds {
			return last, unobserved
		}
		return r.Unobserved.status(), lapsed
	}
	now := r.side(t, neither)
	switch {
	case now == neither:
		return last, tied
	case now == sideOf(last) && t.awaited > 0:
		return last, decided
	case now != sideOf(last) && t.awaited > 0 && (r.side(t, up) != now || r.side(t, down) != now):
		return last, unsettled
	case now == down && sideOf(last) != down && t.lost > 0 && r.side(t.found(), neither) != down:
		return last, outnumbered
	default:
		return t.name(now), decided
	}
}

// side returns the side that wins if the awaited votes are on the given side.
func (r *Rule) side(t *tally, awaited side) side {
	if r.Kind == ZoneMajority {
		var zones count
		for i := range t.zones {
			zones.add(single(t.zones[i].withAwaited(awaited).majority()))
		}
		return zones.majority()
	}
	if r.Kind == Score {
		s := t.withAwaited(awaited).majority()
		if s == down && !t.scoreSuffices(awaited) {
			return neither
		}
		return s
	}
	return r.sideOf(t.withAwaited(awaited))
}

// sideOf is side for the rules that ignore zones. At least one vote counts.
func (r *Rule) sideOf(c count) side {
	fails := false
	switch r.Kind {
	case Any:
		fails = c.down > 0
	case All:
		fails = c.up == 0
	case AtLeast:
		if fails = int(c.down) >= r.AtLeast; !fails && c.up == 0 {
			return neither
		}
	case Share:
		fails = float64(c.up) <= r.Share*float64(c.up+c.down)
	default:
		return c.majority()
	}
	if fails {
		return down
	}
	return up
}

func (u Unobserved) status() health.Status {
	if u == TurnUnhealthy {
		return health.Unhealthy
	}
	return health.Unknown
}

// String describes the rule; it is empty for the majority, which is the default.
func (r *Rule) String() string {
	switch r.Kind {
	case Any:
		return "one down is enough"
	case All:
		return "down only if all are"
	case AtLeast:
		return fmt.Sprintf("down takes %d", r.AtLeast)
	case Share:
		return fmt.Sprintf("up takes more than %g %%", 100*r.Share)
	case ZoneMajority:
		return "by the majority of zones"
	default:
		return ""
	}
}
