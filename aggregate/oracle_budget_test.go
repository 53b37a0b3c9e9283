package aggregate_test

import (
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// oracleBudget is the wait budget of an endpoint.
type oracleBudget struct {
	spent     time.Duration
	end       time.Duration // while spending, the watched time at which nothing is left
	spending  bool
	exhausted bool
}

// budget is the time for which the verdict of an endpoint may wait.
func (o *oracle) budget(e *oracleEndpoint) time.Duration {
	return o.awaitFor + warmUp(e) + max(o.staleness, e.timing.Interval, e.timing.ReportInterval, time.Millisecond)
}

// waited is for how long the verdict of an endpoint has waited of late.
func (o *oracle) waited(e *oracleEndpoint) time.Duration {
	switch {
	case e.exhausted:
		return o.budget(e)
	case e.spending:
		return o.budget(e) - max(0, e.end-o.watched)
	}
	return e.spent
}

// warmUpFrom is how long a pair warms up that has been checked for some time.
func (o *oracle) warmUpFrom(e *oracleEndpoint, checked time.Duration) time.Duration {
	probe := e.timing.InitialJitter + e.timing.Timeout + e.timing.ReportInterval
	if e.exhausted {
		return min(warmUp(e), max(0, probe-checked))
	}
	return warmUp(e)
}

// updateBudget spends the budget of an endpoint whose verdict stays, or fills it again.
func (o *oracle) updateBudget(e *oracleEndpoint) {
	switch {
	case o.isWaiting(e):
		if !e.spending && !e.exhausted {
			e.spending, e.end = true, o.watched+max(0, o.budget(e)-e.spent)
		}
		return
	case e.spending:
		e.spending, e.spent = false, max(0, o.budget(e)-(e.end-o.watched))
	}
	if heard := o.heard(e); len(heard) > 0 {
		rule := e.rule
		if rule.Kind == aggregate.Score {
			rule = aggregate.Rule{}
		}
		if side := verdict(rule, heard); side == "neither" || side == sideOf(e.status) {
			e.oracleBudget = oracleBudget{}
		}
	}
}

// isWaiting tells whether the verdict would be another if nobody were awaited.
func (o *oracle) isWaiting(e *oracleEndpoint) bool {
	counting, awaited, absent, names := o.votes(e)
	warming := false
	for name, p := range e.pairs {
		c := o.checkers[name]
		confirms := p.phase == "warming" && c.state == "heard" || p.phase == "recreated" && p.voted
		warming = warming || confirms && p.status.Down() && c.trust != aggregate.Distrusted
	}
	if e.exhausted {
		awaited, absent = nil, nil
	}
	if e.awaitAbsentEnd != 0 {
		awaited = append(awaited, absent...)
	}
	switch {
	case len(awaited) == 0 && e.confirmEnd == 0 && e.awaitAbsentEnd == 0:
		return false
	case len(counting) == 0 && len(awaited) > 0 && (warming || e.spent > 0 || e.spending):
		return true
	case len(counting) == 0:
		return e.rule.Unobserved != aggregate.Hold && e.judged && e.status != lapsed(e.rule)
	}
	side := verdict(e.rule, counting)
	return side != "neither" && nameOf(side, names) != e.status
}

// heard returns the votes past their warm-up of all who are heard, doubted or not.
func (o *oracle) heard(e *oracleEndpoint) []oracleVote {
	var votes []oracleVote
	for name, p := range e.pairs {
		c := o.checkers[name]
		if side := sideOf(p.status); p.counts() && c.state == "heard" && c.trust != aggregate.Distrusted && side != "neither" {
			votes = append(votes, oracleVote{c.zone, side, 0})
		}
	}
	return votes
}

func sideOf(s health.Status) string {
	switch {
	case s.Up():
		return "up"
	case s.Down():
		return "down"
	default:
		return "neither"
	}
}

// lapsed is the status of an endpoint that no vote counts on.
func lapsed(r aggregate.Rule) health.Status {
	if r.Unobserved == aggregate.TurnUnhealthy {
		return health.Unhealthy
	}
	return health.Unknown
}

// nameOf is the status with the most votes on a side; the worse of equals.
func nameOf(side string, votes map[health.Status]int) health.Status {
	first, second := health.Degraded, health.Healthy
	if side == "down" {
		first, second = health.Unhealthy, health.Timeout
	}
	if votes[first] >= votes[second] {
		return first
	}
	return second
}
