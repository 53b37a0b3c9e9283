package aggregate

import "hdsd/health"

// belief says what a seat's vote is worth.
type belief uint8

const (
	believed   belief = iota // it counts
	unreported               // no vote yet, awaited
	warmingUp                // a down that may be no more than a first probe still under way; awaited
	gone                     // its checker has just fallen silent; awaited
	mute                     // no vote for too long
	outdated                 // its checker has been silent for too long
	undecided                // neither up nor down
)

// awaited tells whether a vote may soon count that does not count now.
func (b belief) awaited() bool { return b == unreported || b == warmingUp || b == gone }

// absent tells whether a checker has been silent for too long to be awaited,
// unless the endpoint settles.
func (b belief) absent() bool { return b == mute || b == outdated }

// String says why the vote does not count; empty where it does.
func (b belief) String() string {
	return [...]string{
		believed: "", unreported: "first report awaited", warmingUp: "warming up", gone: "just fell silent",
		mute: "does not report it", outdated: "not heard lately", undecided: "neither up nor down",
	}[b]
}

// believe judges the vote of one seat. Doubts about a checker or about its
// path to the endpoint belong here too.
func (a *Aggregator) believe(s *seat) belief {
	hearing := a.checkers.all[s.checker].hearing
	switch {
	case s.phase == waiting || s.phase == recreated && s.status == noVote:
		return unreported
	case s.phase == overdue:
		return mute
	case s.phase == recreated:
		return warmingUp
	case hearing == awaited:
		return gone
	case hearing == silent:
		return outdated
	case s.status.Up():
		return believed
	case !s.status.Down():
		return undecided
	case s.phase == warming:
		return warmingUp
	default:
		return believed
	}
}

// tally is what a rule decides from.
type tally struct {
	votes    [health.Degraded + 1]uint16 // that count, by status
	up, down uint16
	awaited  uint16 // the absent of an endpoint that settles included
	absent   uint16
	assigned uint16
}

func (a *Aggregator) tally(e *endpoint, t *tally) {
	*t = tally{assigned: e.count}
	list := a.seats.of(e)
	for i := range list {
		s := &list[i]
		switch b := a.believe(s); {
		case b == believed:
			t.votes[s.status]++
		case b.awaited():
			t.awaited++
		case b.absent():
			t.absent++
		}
	}
	t.up = t.votes[health.Healthy] + t.votes[health.Degraded]
	t.down = t.votes[health.Unhealthy] + t.votes[health.Timeout]
	if e.flags&settling != 0 {
		t.awaited += t.absent
	}
}
