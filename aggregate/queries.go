package aggregate

import (
	"time"

	"hdsd/health"
)

// Verdict returns the verdict of an endpoint, its reason, and the votes; the zero
// verdict of an endpoint that is not known.
func (a *Aggregator) Verdict(id health.EndpointID) health.Verdict {
	e := a.roster.endpoint(id)
	if e == nil {
		return health.Verdict{}
	}
	var t tally
	a.counter.tally(a.settings.of(e), e, &t)
	v := health.Verdict{
		Status: e.status, Reason: a.reasons.explain(id, e, &t), Observations: a.reasons.observations(e),
		// Doubted or not: a checker that is cut off does see the endpoint down.
		Zones: a.zones.verdicts(a.counter.byZone(e, believed, doubted, cutOff)),
	}
	if e.since != never {
		v.Since = time.Unix(0, e.since).UTC()
	}
	return v
}

// Believes reports whether the checker's latest vote on the endpoint counts.
func (a *Aggregator) Believes(id health.EndpointID, checker string) bool {
	e, i := a.roster.find(id, checker)
	return i >= 0 && a.counter.believe(e, &a.roster.seatsOf(e)[i]) == believed
}

// DoubtReason says why a checker is doubted; empty where it is not.
func (a *Aggregator) DoubtReason(checker string) string {
	if c, ok := a.roster.lookup(checker); ok {
		return a.doubts.reason(c)
	}
	return ""
}

// BlindReason says why a checker is taken to be blind; empty where it is not.
func (a *Aggregator) BlindReason(checker string) string {
	if c, ok := a.roster.lookup(checker); ok {
		return a.blindness.reason(c)
	}
	return ""
}

// CutPaths returns the doubted paths from a zone of checkers, one for each zone that
// they lead to: the one from elsewhere only where the zone's own is not doubted.
func (a *Aggregator) CutPaths(from health.Locality) []DoubtChange {
	return a.doubts.cutPaths(a.zones.find(from))
}

// Damped is how many endpoints are held down because they flap.
func (a *Aggregator) Damped() int { return a.decisions.damped() }

// Unobserved is how many endpoints have no vote that counts.
func (a *Aggregator) Unobserved() int { return a.decisions.unobserved }
