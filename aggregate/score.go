package aggregate

import (
	"fmt"

	"hdsd/health"
)

// How much a run of reports of down counts: of one voter among several, and of
// one alone.
const (
	longestRun = 3
	aloneTakes = 4
)

// scoreFor is the score that so many voters must come to.
func scoreFor(voters uint16) int {
	if voters == 1 {
		return aloneTakes
	}
	return int(voters) + 2
}

// run is in how many rounds one after the other a settled vote said down. It
// goes by time: of the reports between two probes only the first is news.
func (p *policy) run(s *seat, c *checker) int {
	since := uint64(uint32(tickOf(c.heardAt)) - s.until)
	return 1 + int(min((since+uint64(p.slack))/uint64(p.round), aloneTakes-1))
}

// runs adds a run.
func (t *tally) runs(length int) {
	t.score += min(length, longestRun)
	t.longest = max(t.longest, length)
}

// fails tells whether the score is enough when those who are awaited are on a
// side.
func (t *tally) fails(awaited side) bool {
	voters, score := t.up+t.down+t.awaited, t.score
	if voters == 1 {
		return t.longest >= aloneTakes
	}
	if awaited == down {
		score += longestRun * int(t.awaited)
	}
	return score >= scoreFor(voters)
}

// scored says what the score is.
func (t *tally) scored() string {
	if t.up+t.down == 1 {
		return fmt.Sprintf("for %d rounds, and one alone takes %d", t.longest, aloneTakes)
	}
	return fmt.Sprintf("score %d, and down takes %d", t.score, scoreFor(t.up+t.down))
}

// fall begins a run.
func (a *Aggregator) fall(id health.EndpointID, e *endpoint, s *seat) {
	s.until = uint32(tickOf(a.checkers.all[s.checker].heardAt))
	a.climbs(id, s, a.policyOf(e))
}

// climbs has every report of the checker looked at while the run grows.
func (a *Aggregator) climbs(id health.EndpointID, s *seat, p *policy) {
	if p.Kind == Score && s.phase == settled && s.status.Down() {
		c := &a.checkers.all[s.checker]
		c.climbing = append(c.climbing, id)
	}
}

// climb marks the endpoints of a checker where its vote may count more than
// before.
func (a *Aggregator) climb(c uint32) {
	x := &a.checkers.all[c]
	list := x.climbing
	x.climbing = x.climbing[:0]
	for _, id := range list {
		e := a.known(id)
		if e == nil {
			continue
		}
		i, p := a.seats.find(e, c), a.policyOf(e)
		if i < 0 || p.Kind != Score {
			continue
		}
		s := &a.seats.of(e)[i]
		if s.phase != settled || !s.status.Down() {
			continue
		}
		a.mark(id, e)
		if p.run(s, x) < aloneTakes {
			x.climbing = append(x.climbing, id)
		}
	}
}

// startRuns begins the runs of a checker anew that was not heard for a while.
func (a *Aggregator) startRuns(c uint32) {
	for _, v := range a.checkers.all[c].votes {
		if s := a.seat(v.Endpoint, c); s.phase == settled && s.status.Down() {
			a.fall(v.Endpoint, &a.endpoints[v.Endpoint], s)
		}
	}
}
