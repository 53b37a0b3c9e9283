package aggregate

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// losses tracks the lost planned votes: those of checkers that were lost, or fell silent, no
// longer than Rule.QuorumHold ago.
type losses struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	vacant    map[health.EndpointID]vacancy
	short     map[health.EndpointID]struct{} // endpoints that lost most planned votes
	earlier   earlier
}

// earlier is the checkers that were lost before this process began, with unknown seats.
type earlier struct {
	seats    uint16                         // upper bound for one endpoint
	lostAt   time.Duration                  // time of the latest loss on the clock: negative
	planned  int                            // largest number of planned votes of an endpoint in affected
	affected map[health.EndpointID]struct{} // endpoints decided while such votes were missing
}

// set sets the number of seats and the time, and returns the endpoints to decide again, in
// order.
func (e *earlier) set(seats uint16, lostAt time.Duration) (affected []health.EndpointID) {
	if seats < e.seats && int(seats) < e.planned {
		affected = slices.Sorted(maps.Keys(e.affected))
	}
	e.seats, e.lostAt = seats, lostAt
	return affected
}

// vacancy is the seats taken from lost checkers.
type vacancy struct {
	seats uint16
	end   tick
}

func newLosses(c *clock, d *deadlines, s *settings, r *roster) losses {
	return losses{
		clock: c, deadlines: d, settings: s, roster: r, vacant: map[health.EndpointID]vacancy{}, short: map[health.EndpointID]struct{}{},
		earlier: earlier{affected: map[health.EndpointID]struct{}{}},
	}
}

// lately reports whether a checker was heard recently, or this process began recently.
func (l *losses) lately(p *policy, k *checker) bool {
	return p.QuorumHold > 0 && l.clock.elapsed-k.heardAt <= p.QuorumHold
}

// isLost reports whether a vote that does not count is lost.
func (l *losses) isLost(p *policy, e *endpoint, k *checker, b belief) bool {
	missing := b.absent() || b.awaited() && e.has(budgetSpent)
	return missing && k.hearing.of(p.class).state != heard && l.lately(p, k)
}

// vacate notes that a checker loses a seat.
func (l *losses) vacate(id health.EndpointID, e *endpoint, k *checker) {
	p := l.settings.ofEndpoint(e)
	if !k.lost && k.hearing.of(p.class).state == heard || !l.lately(p, k) {
		return
	}
	v := l.vacant[id]
	v.seats++
	if end := l.clock.tickFrom(k.heardAt, p.QuorumHold) + 1; end > v.end {
		v.end = end
		l.deadlines.add(end, deadline{id, dueVacancy})
	}
	l.vacant[id] = v
}

// fill notes that a checker gets a seat.
func (l *losses) fill(id health.EndpointID) {
	if v, ok := l.vacant[id]; ok && v.seats > 1 {
		v.seats--
		l.vacant[id] = v
	} else {
		delete(l.vacant, id)
	}
}

// due forgets the vacant seats of an endpoint at their deadline.
func (l *losses) due(id health.EndpointID, now tick) {
	v, vacant := l.vacant[id]
	if vacant = vacant && v.end == now; vacant {
		delete(l.vacant, id)
	}
	_, affected := l.earlier.affected[id]
	if delete(l.earlier.affected, id); vacant || affected {
		l.mark(id)
	}
}

func (l *losses) mark(id health.EndpointID) {
	if e := l.roster.endpoint(id); e != nil {
		l.roster.mark(id, e)
	}
}

// counts reports whether the votes of earlier lost checkers still count as lost.
func (l *losses) counts(p *policy) bool {
	return l.earlier.seats > 0 && l.clock.elapsed-l.earlier.lostAt <= p.QuorumHold
}

// complete adds the vacant seats of an endpoint to its lost votes. Together with the others
// these never exceed the plan.
func (l *losses) complete(id health.EndpointID, p *policy, t *tally) {
	if p.QuorumHold <= 0 {
		return
	}
	remaining := t.assigned - t.lost
	seats := l.vacant[id].seats
	if l.counts(p) {
		seats = max(seats, l.earlier.seats)
	}
	if seats > 0 {
		t.lost += seats
		if p.Kind == ZoneMajority {
			t.addZone(noZone, count{lost: seats})
		}
	}
	t.lost = min(t.lost, uint16(max(0, p.Votes-int(remaining))))
}

// judge notes whether most planned votes of an endpoint are lost, and decides it again once
// those of earlier lost checkers are not lost any more.
func (l *losses) judge(id health.EndpointID, p *policy, t *tally) {
	if _, known := l.earlier.affected[id]; !known && t.lost > 0 && l.counts(p) {
		l.earlier.affected[id] = struct{}{}
		l.earlier.planned = max(l.earlier.planned, p.Votes)
		l.deadlines.add(l.clock.tickFrom(l.earlier.lostAt, p.QuorumHold)+1, deadline{id, dueVacancy})
	}
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
	delete(l.earlier.affected, id)
}
