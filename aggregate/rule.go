package aggregate

import (
	"fmt"
	"time"

	"hdsd/health"
)

// Kind is a way to get from votes to a verdict. Votes that do not count are left
// out.
type Kind uint8

// The kinds of rule.
const (
	Majority     Kind = iota // the side with more votes
	Any                      // down when any vote is, else up
	All                      // down when all votes are, else up
	AtLeast                  // down when Rule.AtLeast votes are; else up when any vote is
	Share                    // up when more than Rule.Share of the votes are, else down
	ZoneMajority             // the side with more zones, each of which goes by the majority of its own votes
	Score                    // up by majority; down by majority when its runs of reports add up to enough: 5 for 3 voters
)

// Unobserved is what becomes of an endpoint when no vote counts.
type Unobserved uint8

// The kinds of Unobserved.
const (
	Hold          Unobserved = iota // the last verdict stays
	TurnUnknown                     // it is UNKNOWN
	TurnUnhealthy                   // it is UNHEALTHY
)

// Rule says how the votes on an endpoint become its verdict. The zero Rule is
// Majority and Hold.
type Rule struct {
	Kind       Kind
	AtLeast    int     // for AtLeast
	Share      float64 // for Share; at least 0 and less than 1
	Unobserved Unobserved

	// DegradedWhen holds the HTTP status codes with which a vote of UNHEALTHY
	// counts as DEGRADED.
	DegradedWhen Codes

	// WarmUp is how long after its first vote a pair's downs do not count.
	// Default: as follows from Timing.
	WarmUp time.Duration

	// Limits say whose votes count.
	Limits BeliefLimits

	// Damping holds endpoints down that flap.
	Damping Damping

	// MassHold is how long downs wait when one round takes more than half of a
	// cluster down, and neither all votes nor all zones agree on them. Where it
	// is 0, they do not wait.
	MassHold time.Duration
}

// outcome says how a rule got to its status.
type outcome uint8

const (
	decided    outcome = iota
	tied               // the votes come to neither side: the last verdict holds
	unsettled          // the awaited votes could turn it round: the last verdict holds
	unobserved         // no vote counts: the last verdict holds
	lapsed             // no vote counts: the last verdict does not hold
)

// decide returns the status that follows from a tally.
//
// It asks what would follow if all awaited votes were up, and if all were down. So
// what the first checkers report after a start decides only if it still will when
// all have. Otherwise two of three checkers that see an endpoint down would lose to
// the third for as long as they warm up. For the same reason a verdict does not
// change its name (UNHEALTHY to TIMEOUT) while a vote is awaited.
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
	default:
		return t.name(now), decided
	}
}

// side returns the side that the votes come to when the awaited ones are on a side.
func (r *Rule) side(t *tally, awaited side) side {
	if r.Kind == ZoneMajority {
		var zones count
		for i := range t.zones {
			zones.add(one(t.zones[i].with(awaited).majority()))
		}
		return zones.majority()
	}
	if r.Kind == Score {
		s := t.with(awaited).majority()
		if s == down && !t.scoreSuffices(awaited) {
			return neither
		}
		return s
	}
	return r.of(t.with(awaited))
}

// of is side for the rules that need no zones. Some vote counts.
func (r *Rule) of(c count) side {
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

// String says what the rule asks for; empty for the majority, which everybody
// expects.
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
