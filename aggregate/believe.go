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
	doubted                  // a down of a checker that is doubted
	cutOff                   // a down over a path that is doubted
	refused                  // an operator distrusts its checker
)

// awaited tells whether a vote may soon count that does not count now.
func (b belief) awaited() bool { return b == unreported || b == warmingUp || b == gone }

// weighed tells whether a vote is that of a checker that is heard, and so can be
// held against it, whatever it is worth.
func (b belief) weighed() bool {
	return b == believed || b == undecided || b == doubted || b == cutOff
}

// absent tells whether a checker has been silent for too long to be awaited,
// unless the endpoint settles.
func (b belief) absent() bool { return b == mute || b == outdated }

// believe judges the vote of one seat.
func (a *Aggregator) believe(e *endpoint, s *seat) belief {
	return a.judge(a.policyOf(e), e, s)
}

// judge is believe where the endpoint's policy is at hand.
func (a *Aggregator) judge(p *policy, e *endpoint, s *seat) belief {
	c := &a.checkers.all[s.checker]
	k := c.in(p.class)
	switch {
	case c.word == Distrusted:
		return refused
	case s.phase == waiting || s.phase == recreated && s.status == noVote:
		return unreported
	case s.phase == overdue:
		return mute
	case s.phase == recreated:
		return warmingUp
	case k.hearing == awaited:
		return gone
	case k.hearing == silent:
		return outdated
	case s.status.Up():
		return believed
	case !s.status.Down():
		return undecided
	case s.phase == warming:
		return warmingUp
	case k.record.doubted:
		return doubted
	case a.cut(e, s):
		return cutOff
	default:
		return believed
	}
}

// count is how many votes are on each side, and how many are awaited.
type count struct{ up, down, awaited uint16 }

// with gives the count when those who are awaited are on a side.
func (c count) with(awaited side) count {
	switch awaited {
	case up:
		c.up += c.awaited
	case down:
		c.down += c.awaited
	}
	return c
}

func (c count) majority() side {
	switch {
	case c.up > c.down:
		return up
	case c.down > c.up:
		return down
	default:
		return neither
	}
}

// tally is what a rule decides from.
type tally struct {
	count                                // the absent of an endpoint that settles are awaited
	votes    [health.Degraded + 1]uint16 // that count, by status
	warming  uint16                      // downs that may count when they have warmed up
	absent   uint16
	assigned uint16
	holds    bool        // the last verdict is to hold when no vote counts, whatever the rule
	inside   bool        // in the endpoint's own zone, unless it is deserted, a checker says up or is awaited, and none says down
	answered bool        // a down that counts is an answer, so that its checker got through
	firm     bool        // an up that counts is not on its way down
	score    int         // the runs of the downs that count, where the rule asks for them
	longest  int         // of these runs
	zones    []zoneCount // where the rule asks for them
}

// leastError is the least HTTP status code that says that something is wrong.
const leastError = 400

type zoneCount struct {
	zone uint32
	count
}

func (a *Aggregator) tally(e *endpoint, t *tally) {
	*t = tally{assigned: uint16(e.count), holds: e.since == never || e.flags&settling != 0, zones: t.zones[:0]}
	p, own := a.policyOf(e), count{}
	list := a.seats.of(e)
	for i := range list {
		s := &list[i]
		var one count
		b := a.judge(p, e, s)
		switch {
		case b == believed:
			t.votes[s.status]++
			switch sideOf(s.status) {
			case up:
				one.up = 1
				t.firm = t.firm || !s.wavers()
			case down:
				one.down = 1
				t.answered = t.answered || s.code >= leastError
				if p.Kind == Score {
					t.runs(p.run(s, &a.checkers.all[s.checker]))
				}
			}
		case b.awaited():
			one.awaited = 1
			if b == warmingUp && s.status.Down() {
				t.warming++
			}
		case b.absent():
			t.absent++
			if e.flags&settling != 0 {
				one.awaited = 1
			}
		}
		t.add(one)
		c := &a.checkers.all[s.checker]
		if e.zone != 0 && c.zone == e.zone && !(c.lost && a.zones.deserted(e.zone)) {
			own.add(one)
		}
		if p.Kind == ZoneMajority {
			t.inZone(c.zone, one)
		}
	}
	t.inside = own.up+own.awaited > 0 && own.down == 0
	if e.flags&exhausted != 0 {
		t.expectNobody(e)
	}
}

// counted is one vote on a side.
func counted(on side) count {
	switch on {
	case up:
		return count{up: 1}
	case down:
		return count{down: 1}
	default:
		return count{}
	}
}

func (c *count) add(one count) {
	c.up += one.up
	c.down += one.down
	c.awaited += one.awaited
}

func (t *tally) inZone(zone uint32, one count) {
	for i := range t.zones {
		if t.zones[i].zone == zone {
			t.zones[i].add(one)
			return
		}
	}
	t.zones = append(t.zones, zoneCount{zone, one})
}

// name is the status with the most votes on a side; of equals the worse.
func (t *tally) name(of side) health.Status {
	worse, better := health.Degraded, health.Healthy
	if of == down {
		worse, better = health.Unhealthy, health.Timeout
	}
	if t.votes[worse] >= t.votes[better] {
		return worse
	}
	return better
}
