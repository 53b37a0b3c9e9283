package aggregate

import "hdsd/health"

// losses knows which planned votes are lost: those of checkers that were lost, or fell
// silent, no longer than Rule.QuorumHold ago.
type losses struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	vacant    map[health.EndpointID]vacancy
	short     map[health.EndpointID]struct{} // those of which most planned votes are lost
}

// vacancy is the seats that were taken from lost checkers.
type vacancy struct {
	seats uint16
	until tick
}

func newLosses(c *clock, d *deadlines, s *settings, r *roster) losses {
	return losses{clock: c, deadlines: d, settings: s, roster: r, vacant: map[health.EndpointID]vacancy{}, short: map[health.EndpointID]struct{}{}}
}

// lately reports whether a checker that is not heard was heard not long ago, or this
// process runs for no longer.
func (l *losses) lately(p *policy, k *checker) bool {
	return p.QuorumHold > 0 && l.clock.elapsed-k.heardAt <= p.QuorumHold
}

// isLost reports whether a vote that does not count is lost.
func (l *losses) isLost(p *policy, e *endpoint, k *checker, b belief) bool {
	gone := b.absent() || b.awaited() && e.has(budgetSpent)
	return gone && k.hearing.in(p.class).state != heard && l.lately(p, k)
}

// vacate takes note that a seat is taken from a checker.
func (l *losses) vacate(id health.EndpointID, e *endpoint, k *checker) {
	p := l.settings.of(e)
	if !k.lost && k.hearing.in(p.class).state == heard || !l.lately(p, k) {
		return
	}
	v := l.vacant[id]
	v.seats++
	if until := l.clock.after(k.heardAt, p.QuorumHold) + 1; until > v.until {
		v.until = until
		l.deadlines.add(until, deadline{id, dueVacancy})
	}
	l.vacant[id] = v
}

// fill takes note that a checker gets a seat.
func (l *losses) fill(id health.EndpointID) {
	if v, ok := l.vacant[id]; ok && v.seats > 1 {
		v.seats--
		l.vacant[id] = v
	} else {
		delete(l.vacant, id)
	}
}

// due forgets the vacant seats of an endpoint, if the deadline is theirs.
func (l *losses) due(id health.EndpointID, now tick) {
	if v, ok := l.vacant[id]; ok && v.until == now {
		delete(l.vacant, id)
		if e := l.roster.endpoint(id); e != nil {
			l.roster.mark(id, e)
		}
	}
}

// complete adds the vacant seats of an endpoint to its lost votes. Together with the others
// these are never more than planned.
func (l *losses) complete(id health.EndpointID, p *policy, t *tally) {
	if p.QuorumHold <= 0 {
		return
	}
	others := t.assigned - t.lost
	if v := l.vacant[id]; v.seats > 0 {
		t.lost += v.seats
		if p.Kind == ZoneMajority {
			t.addZone(noZone, count{lost: v.seats})
		}
	}
	t.lost = min(t.lost, uint16(max(0, p.Votes-int(others))))
}

// judge takes note of whether most planned votes of an endpoint are lost.
func (l *losses) judge(id health.EndpointID, t *tally) {
	if t.lost > 0 && t.up+t.down <= t.lost {
		l.short[id] = struct{}{}
	} else {
		delete(l.short, id)
	}
}

// forget forgets an endpoint.
func (l *losses) forget(id health.EndpointID) {
	delete(l.short, id)
	delete(l.vacant, id)
}
