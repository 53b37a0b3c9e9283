package aggregate

import (
	"time"

	"hdsd/health"
)

// Verdict returns the verdict of an endpoint, its reason, and the votes. For an
// unknown endpoint it returns the zero verdict.
func (a *Aggregator) Verdict(id health.EndpointID) health.Verdict {
	e := a.roster.endpoint(id)
	if e == nil {
		return health.Verdict{}
	}
	var t tally
	a.counter.tally(id, a.settings.ofEndpoint(e), e, &t)
	v := health.Verdict{
		Status: e.status, Reason: a.reasons.explain(id, e, &t), Observations: a.reasons.observations(e),
		// Doubted votes are included: a checker that is cut off does see the endpoint
		// down.
		Zones: a.zones.verdicts(a.counter.byZone(e, believed, doubted, cutOff)),
		Since: e.sinceTime(),
	}
	return v
}

// Believes reports whether the checker's latest vote on the endpoint counts.
func (a *Aggregator) Believes(id health.EndpointID, checker string) bool {
	e, i := a.roster.find(id, checker)
	return i >= 0 && a.counter.believe(e, &a.roster.seatsOf(e)[i]) == believed
}

// Held reports whether no vote that counts stands behind the verdict of an endpoint, and since
// when. UNKNOWN is not held, nor is an endpoint that never had a verdict.
func (a *Aggregator) Held(id health.EndpointID) (start time.Time, held bool) {
	e := a.roster.endpoint(id)
	if e == nil || e.votersOf() > 0 || e.verdictTime == never || e.status == health.Unknown {
		return time.Time{}, false
	}
	return a.decisions.witnesses.missing(id), true
}

// Standing returns the number of votes that count on an endpoint, ManyVoters at most, and the
// time of its verdict; zero if it never had one.
func (a *Aggregator) Standing(id health.EndpointID) (voters int, start time.Time) {
	e := a.roster.endpoint(id)
	if e == nil {
		return 0, time.Time{}
	}
	return e.votersOf(), e.sinceTime()
}

// Voters counts the endpoints by the number of votes that count.
func (a *Aggregator) Voters() Voters { return a.decisions.witnesses.voters }

// DoubtReason returns the reason why a checker is doubted; it is empty if the checker is not.
func (a *Aggregator) DoubtReason(checker string) string {
	if c, ok := a.roster.lookup(checker); ok {
		return a.doubts.reason(c)
	}
	return ""
}

// BlindReason returns the reason why a checker is blind; it is empty if the checker is not.
func (a *Aggregator) BlindReason(checker string) string {
	if c, ok := a.roster.lookup(checker); ok {
		return a.blindness.reason(c)
	}
	return ""
}

// CutPaths returns the doubted paths from a zone of checkers, one for each destination. It
// returns the path from elsewhere only if the zone's own path is not doubted.
func (a *Aggregator) CutPaths(locality health.Locality) []DoubtChange {
	return a.doubts.cutPaths(a.zones.find(locality))
}

// Paths returns the paths between zones that votes took, by zone.
func (a *Aggregator) Paths() []Path { return a.doubts.paths() }

// Damped counts the endpoints that are held down because they flap.
func (a *Aggregator) Damped() int { return a.decisions.damped() }

// Unobserved counts the endpoints without a vote that counts.
func (a *Aggregator) Unobserved() int { return a.decisions.unobserved }

// TakeChanged returns the names of the clusters with an endpoint that is new, or has another
// verdict or another number of votes that count, since the last call. A name may be that of no
// cluster.
func (a *Aggregator) TakeChanged() []string { return a.clusters.takeChanged() }

// Short counts the endpoints of which most planned votes are lost; see Rule.QuorumHold.
func (a *Aggregator) Short() int { return len(a.losses.short) }

// Observed counts the endpoints of a cluster that have a vote that counts.
func (a *Aggregator) Observed(cluster string) int {
	number, ok := a.clusters.numbers[cluster]
	if !ok {
		return 0
	}
	return a.clusters.get(number).observed
}
