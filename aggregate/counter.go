package aggregate

import (
	"slices"

	"hdsd/health"
)

// belief tells whether a seat's vote counts, and if not, the cause.
type belief uint8

const (
	believed    belief = iota // it counts
	unreported                // no vote yet; awaited
	warmingUp                 // a down that may only mean that the first probe has not ended; awaited
	fellSilent                // its checker has just fallen silent; awaited
	notReported               // no vote for too long
	stale                     // its checker has been silent for too long
	undecided                 // neither up nor down
	doubted                   // a down of a checker that is doubted
	cutOff                    // a down over a path that is doubted
	distrusted                // an operator distrusts its checker
)

// awaited reports whether a vote may soon count that does not count now.
func (b belief) awaited() bool { return b == unreported || b == warmingUp || b == fellSilent }

// heard reports whether a vote comes from a checker that is heard, and is past its
// warm-up. Such a vote can contradict others, or speak against its own checker, even
// if it does not count.
func (b belief) heard() bool {
	return b == believed || b == undecided || b == doubted || b == cutOff
}

// absent reports whether a checker has been silent for too long to be awaited, unless
// the endpoint has awaitsAbsent.
func (b belief) absent() bool { return b == notReported || b == stale }

// counter judges votes and counts them.
type counter struct {
	settings *settings
	roster   *roster
	presence *presence
	records  *records
	losses   *losses

	zones []zoneTally // of the latest call of byZone
}

// believe judges the vote of one seat.
func (c *counter) believe(e *endpoint, s *seat) belief {
	return c.judge(c.settings.ofEndpoint(e), e, s, c.roster.checker(s.checker))
}

// judge judges a vote whose policy and checker the caller has at hand.
func (c *counter) judge(p *policy, e *endpoint, s *seat, k *checker) belief {
	hearing := k.hearing.of(p.class).state
	switch {
	case k.trust == Distrusted:
		return distrusted
	case s.phase == waiting || s.phase == recreated && s.status == noVote:
		return unreported
	case s.phase == overdue:
		return notReported
	case s.phase == recreated:
		return warmingUp
	case hearing == awaited:
		return fellSilent
	case hearing == silent:
		return stale
	case s.status.Up():
		return believed
	case !s.status.Down():
		return undecided
	case s.phase == warming:
		return warmingUp
	case k.record.of(p.class).doubted:
		return doubted
	case c.records.cut(e, s) && !e.has(countsCut):
		return cutOff
	default:
		return believed
	}
}

// tally counts the votes on an endpoint.
func (c *counter) tally(id health.EndpointID, p *policy, e *endpoint, t *tally) {
	*t = tally{assigned: uint16(e.count), holds: e.verdictTime == never || e.has(awaitsAbsent), zones: t.zones[:0]}
	ownZone := count{}
	list := c.roster.seatsOf(e)
	for i := range list {
		s := &list[i]
		k := c.roster.checker(s.checker)
		var vote count
		b := c.judge(p, e, s, k)
		switch {
		case b == believed:
			t.votes[s.status]++
			switch sideOf(s.status) {
			case up:
				vote.up = 1
				t.firm = t.firm || !s.failsNow()
			case down:
				vote.down = 1
				t.answered = t.answered || s.code >= firstError
				if e.has(countsCut) && c.records.cut(e, s) {
					t.overCut++
				}
				if p.Kind == Score {
					t.addRun(p.runLength(s, k))
				}
			}
		case b.awaited():
			vote.awaited = 1
			if b == warmingUp && s.status.Down() {
				t.warming++
			}
		case b.absent():
			t.absent++
			if e.has(awaitsAbsent) {
				vote.awaited = 1
			}
		}
		if b != believed && c.losses.isLost(p, e, k, b) {
			vote.lost = 1
		}
		t.add(vote)
		if c.presence.speaksFor(e, k) {
			ownZone.add(vote)
			t.muted = t.muted || b == doubted
		}
		if p.Kind == ZoneMajority {
			t.addZone(k.zone, vote)
		}
	}
	c.losses.complete(id, p, t)
	t.muted = t.muted && ownZone.up+ownZone.awaited == 0
	t.inside = (ownZone.up+ownZone.awaited > 0 || t.muted) && ownZone.down == 0
	if e.has(budgetSpent) {
		t.expectNobody(e)
	}
}

// heard returns the majority of the votes of all checkers that are heard, doubted or not, and
// whether there are any. The Score rule needs no more than the majority here.
func (c *counter) heard(e *endpoint) (side, bool) {
	p, t := c.settings.ofEndpoint(e), tally{}
	list := c.roster.seatsOf(e)
	for i := range list {
		s := &list[i]
		k := c.roster.checker(s.checker)
		if !c.judge(p, e, s, k).heard() {
			continue
		}
		vote := single(sideOf(s.status))
		t.add(vote)
		if p.Kind == ZoneMajority {
			t.addZone(k.zone, vote)
		}
	}
	if t.up+t.down == 0 {
		return neither, false
	}
	if p.Kind == ZoneMajority {
		return p.side(&t, neither), true
	}
	return p.sideOf(t.count), true
}

// zoneTally is a tally of the votes of one zone's checkers.
type zoneTally struct {
	zone uint32
	tally
}

// byZone counts the votes on an endpoint that have one of the given beliefs, by the
// zones of their checkers. The result is valid until the next call.
func (c *counter) byZone(e *endpoint, worth ...belief) []zoneTally {
	zones := c.zones[:0]
	list := c.roster.seatsOf(e)
	for i := range list {
		number := c.roster.checker(list[i].checker).zone
		index := slices.IndexFunc(zones, func(z zoneTally) bool { return z.zone == number })
		if index < 0 {
			index = len(zones)
			zones = append(zones, zoneTally{zone: number})
		}
		if slices.Contains(worth, c.believe(e, &list[i])) {
			zones[index].votes[list[i].status]++
			zones[index].add(single(sideOf(list[i].status)))
		}
	}
	c.zones = zones
	return zones
}
