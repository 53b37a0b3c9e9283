package aggregate

import (
	"math"
	"time"

	"hdsd/health"
)

// BeliefLimits says for how long votes count, and who is doubted. A zero field is as
// in the aggregator's options. Endpoints with the same BeliefLimits are judged
// together, and apart from all others: a checker may be doubted in one of these
// classes and believed in the next.
type BeliefLimits struct {
	Staleness time.Duration
	Doubt     Doubt
}

// terms is how endpoints are judged, and how they are checked as far as that
// matters; the same for a whole cluster.
type terms struct {
	Rule
	warmUp uint32 // milliseconds from a pair's first vote to belief in its downs
	probe  uint32 // milliseconds in which a checker has told what its first probe came to
	stale  uint32 // milliseconds for which a re-created host may still be reported as it was before
	round  uint32 // milliseconds in which a checker has something new to say
	slack  uint32 // milliseconds by which that may come too early
}

func termsOf(e *Endpoint) terms {
	t := terms{
		Rule: e.Rule, warmUp: e.Timing.warmUp(), stale: milliseconds(2 * min(e.Timing.ReportInterval, math.MaxInt64/4)),
		round: max(1, milliseconds(e.Timing.Interval), milliseconds(e.Timing.ReportInterval)), slack: milliseconds(e.Timing.ReportInterval / 2),
	}
	t.probe = milliseconds(min(e.Timing.InitialJitter, longestTiming) + min(e.Timing.Timeout, longestTiming) + min(e.Timing.ReportInterval, longestTiming))
	if e.Rule.WarmUp > 0 {
		t.warmUp = milliseconds(e.Rule.WarmUp)
	}
	return t
}

// policy is what is kept of the terms that endpoints share.
type policy struct {
	terms
	class uint32 // number of its BeliefLimits
}

func (a *Aggregator) policyOf(e *endpoint) *policy { return a.policies.at(e.policy) }

// classOf numbers what is asked of votes. There are as many as the
// configuration ever had, which are few.
func (a *Aggregator) classOf(t BeliefLimits) uint32 {
	for i := range a.classes {
		if a.classes[i] == t {
			return uint32(i)
		}
	}
	a.classes = append(a.classes, t)
	a.watchFor()
	return uint32(len(a.classes) - 1)
}

// watchFor sets how long a pause may be in which votes count: after the longest
// staleness, nobody's does.
func (a *Aggregator) watchFor() {
	a.clock.gap = 0
	for class := range a.classes {
		a.clock.gap = max(a.clock.gap, a.staleness(uint32(class)))
	}
}

// doubt gives the limits of a class.
func (a *Aggregator) doubt(class uint32) Doubt {
	return a.classes[class].Doubt.or(&a.options.Doubt)
}

// staleness is how long a checker may be silent before its votes on endpoints
// of a class no longer count.
func (a *Aggregator) staleness(class uint32) time.Duration {
	if own := a.classes[class].Staleness; own > 0 {
		return own
	}
	return a.options.Staleness
}

func (a *Aggregator) usePolicy(t *terms) uint32 {
	number, first := a.policies.use(*t)
	if first {
		*a.policies.at(number) = policy{terms: *t, class: a.classOf(t.Limits)}
	}
	return number
}

// adopt puts an endpoint under terms, those of its cluster as a rule.
func (a *Aggregator) adopt(id health.EndpointID, x *endpoint, t *terms) {
	number := a.usePolicy(t)
	p, before := a.policies.at(number), a.policyOf(x)
	if before.class != p.class {
		a.leaveRecords(x)
		a.mark(id, x)
	}
	same := before.Rule == p.Rule
	a.policies.drop(x.policy)
	x.policy = number
	for i := range a.seats.of(x) {
		a.stand(a.seats.of(x)[i].checker, p.class)
	}
	if !same {
		a.reconsider(id, x)
	}
}

// reconsider looks at the votes on an endpoint under another rule.
func (a *Aggregator) reconsider(id health.EndpointID, e *endpoint) {
	p := a.policyOf(e)
	list := a.seats.of(e)
	for i := range list {
		s := &list[i]
		said := a.checkers.all[s.checker].votes[s.place].Status
		if status := p.counts(said, s.code); s.phase >= recreated && status != s.status {
			a.take(id, e, i, status)
		} else {
			a.climbs(id, s, p)
		}
	}
	a.mark(id, e)
}

// counts says what a vote counts as. Envoy reports what answers that it is
// degraded as UNHEALTHY, with the status code of the answer.
func (p *policy) counts(said health.Status, code uint16) health.Status {
	if said == health.Unhealthy && code != 0 && p.DegradedWhen.Has(code) {
		return health.Degraded
	}
	return said
}
