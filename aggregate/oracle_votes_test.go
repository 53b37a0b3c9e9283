package aggregate_test

import (
	"time"

	"hdsd/health"
)

// setVote counts a vote as what the rule makes of it.
func (o *oracle) setVote(now time.Duration, e *oracleEndpoint, c *oracleChecker, p *oraclePair, said health.Status) {
	was, fresh := p.status, p.phase == "waiting" || p.phase == "overdue"
	wasDown := was.Down()
	if !p.counts() {
		wasDown = e.status.Down()
	}
	p.said, p.status = said, said
	passed := said == health.Unhealthy && p.code != 0 && e.rule.DegradedWhen.Has(p.code) && c.fresh
	recovers := passed && wasDown && e.timing.HealthyThreshold > 1 && e.rule.Passing.Has(p.code)
	if passed && !recovers {
		p.status = health.Degraded
	}
	switch {
	case recovers && p.phase == "warm":
		p.phase, p.end = "recovering", now+recovery(e)
	case !recovers && p.phase == "recovering":
		p.phase, p.fell = "warm", c.heard
	}
	if fresh || p.status != was {
		p.began = p.code
	}
	switch {
	case p.phase == "recreated":
	case p.status.Up():
		p.phase = "warm"
	case p.phase == "waiting" || p.phase == "overdue":
		p.phase, p.end = "warming", now+o.warmUpFrom(e, 0)
		o.believeAnswer(now, e, c, p)
	case p.phase == "warming":
		o.believeAnswer(now, e, c, p)
	case p.phase == "warm" && p.status.Down() && !was.Down():
		p.fell = c.heard
	}
}

// believeAnswer ends a warm-up that no rule asks for, if an endpoint has answered.
func (o *oracle) believeAnswer(now time.Duration, e *oracleEndpoint, c *oracleChecker, p *oraclePair) {
	if p.code != 0 && e.rule.WarmUp == 0 {
		p.phase, p.fell = "warm", c.heard
		o.setVote(now, e, c, p, p.said)
	}
}

// recovery is how long an endpoint that was down may be reported as down although every
// probe passes.
func recovery(e *oracleEndpoint) time.Duration {
	t := e.timing
	return t.ReportInterval + time.Duration(t.HealthyThreshold)*(t.Interval+t.Timeout)
}

// counts tells whether every vote of the pair counts.
func (p *oraclePair) counts() bool { return p.phase == "warm" || p.phase == "recovering" }
