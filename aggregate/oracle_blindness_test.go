package aggregate_test

import (
	"slices"
	"time"

	"hdsd/aggregate"
)

// blind tells whether it missed outages of two clusters.
func (c *oracleChecker) blind() bool {
	return slices.ContainsFunc(c.misses, func(cluster string) bool { return cluster != c.misses[0] })
}

// seesOutage tells whether a checker says down somewhere as its peers do.
func (o *oracle) seesOutage(checker string) bool {
	for _, e := range o.endpoints {
		if p := e.pairs[checker]; p != nil && p.outage == "seen" {
			return true
		}
	}
	return false
}

// trackOutages finds who sees that an endpoint is down.
func (o *oracle) trackOutages(now time.Duration, e *oracleEndpoint) {
	says := map[string]int{}
	for name, p := range e.pairs {
		says[o.worth(e, name, p)]++
	}
	for name, p := range e.pairs {
		was := p.outage
		p.outage = ""
		if worth := o.worth(e, name, p); says["down"] > says["up"] && p.counts() {
			switch {
			case worth == "up" && o.checkers[name].zone == e.zone && o.looksCut(e):
			case worth == "up":
				p.outage = "missed"
			case worth == "down" && says["down"] > 1:
				p.outage = "seen"
			}
		}
		if p.outage == was {
			continue
		}
		switch p.missed = 0; p.outage {
		case "missed":
			p.missed = now + 4*max(e.timing.Interval, e.timing.ReportInterval, time.Millisecond)
		case "seen":
			o.checkers[name].misses = nil
		}
	}
}

// looksCut tells whether those who say down of an endpoint get no answer, and
// nobody in its own zone says so.
func (o *oracle) looksCut(e *oracleEndpoint) bool {
	up := false
	for name, p := range e.pairs {
		worth, c := o.worth(e, name, p), o.checkers[name]
		if worth == "down" && p.code >= 400 {
			return false
		}
		if e.zone == "" || c.zone != e.zone || c.lost && o.deserted(c.zone) {
			continue
		}
		if worth == "down" {
			return false
		}
		doubted := p.counts() && c.state == "heard" && c.trust != aggregate.Distrusted && p.status.Down() && c.doubted
		up = up || doubted || worth == "up" || worth == "awaited" || worth == "absent" && e.awaitAbsentEnd != 0
	}
	return up
}

// ownHeard tells whether somebody in the endpoint's own zone says up or is awaited.
func (o *oracle) ownHeard(e *oracleEndpoint) bool {
	for name, p := range e.pairs {
		worth, c := o.worth(e, name, p), o.checkers[name]
		speaks := e.zone != "" && c.zone == e.zone && !(c.lost && o.deserted(c.zone))
		if speaks && (worth == "up" || worth == "awaited" || worth == "absent" && e.awaitAbsentEnd != 0) {
			return true
		}
	}
	return false
}
