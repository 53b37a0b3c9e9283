package aggregate

import (
	"math"
	"time"

	"hdsd/health"
)

// terms is how an endpoint is judged, and how it is checked as far as that
// matters. As a rule it is the same for a whole cluster. All times are in
// milliseconds.
type terms struct {
	Rule
	warmUp     uint32 // from a pair's first vote until its downs count
	firstProbe uint32 // until a checker has reported the result of its first probe
	lingering  uint32 // for how long a re-created host may be reported as it was before
	round      uint32 // until a checker has something new to say
	slack      uint32 // by how much that may come too early
}

func termsOf(e *Endpoint) terms {
	t := terms{
		Rule: e.Rule, warmUp: e.Timing.warmUp(), lingering: milliseconds(2 * min(e.Timing.ReportInterval, math.MaxInt64/4)),
		round: max(1, milliseconds(e.Timing.Interval), milliseconds(e.Timing.ReportInterval)), slack: milliseconds(e.Timing.ReportInterval / 2),
	}
	t.firstProbe = milliseconds(min(e.Timing.InitialJitter, longestTiming) + min(e.Timing.Timeout, longestTiming) + min(e.Timing.ReportInterval, longestTiming))
	if e.Rule.WarmUp > 0 {
		t.warmUp = milliseconds(e.Rule.WarmUp)
	}
	return t
}

// longestTiming is more than milliseconds can hold, and far from an overflow.
const longestTiming = 50 * 24 * time.Hour

// warmUp is how long after its first vote a pair's downs do not count: its first
// probe must have ended, been reported, and confirmed as often as the threshold
// asks, with a round to spare. Milliseconds.
func (t Timing) warmUp() uint32 {
	rounds := time.Duration(t.UnhealthyThreshold) + 1
	return milliseconds(min(t.InitialJitter, longestTiming) + min(t.Timeout, longestTiming) + min(t.ReportInterval, longestTiming) +
		rounds*min(t.Interval, longestTiming/rounds+1))
}

// policy is the terms that endpoints share.
type policy struct {
	terms
	class uint32
}

// roundTime is how long a checker takes to have something new to say.
func (p *policy) roundTime() time.Duration { return fromMilliseconds(p.round) }

// settings holds the options and the terms of all endpoints. Endpoints whose
// limits of belief are the same are of one class.
type settings struct {
	options  Options
	policies pool[terms, policy]
	classes  []BeliefLimits // by number; as many as the configuration ever had, which are few
}

func newSettings(o Options) settings {
	return settings{options: o.withDefaults(), classes: []BeliefLimits{{}}}
}

// configure changes the options, and tells whether the limits of doubt changed.
func (s *settings) configure(o Options) bool {
	before := s.options.Doubt
	s.options = o.withDefaults()
	return s.options.Doubt != before
}

// awaitFor is how long a voter without a vote is awaited.
func (s *settings) awaitFor() time.Duration { return s.options.AwaitFor }

// zoneViews reports whether zone views are asked for.
func (s *settings) zoneViews() bool { return s.options.ZoneViews }

// of returns an endpoint's policy.
func (s *settings) of(e *endpoint) *policy { return s.policies.at(e.policy) }

// use adds an endpoint to a policy and returns its number.
func (s *settings) use(t *terms) uint32 {
	number, first := s.policies.use(*t)
	if first {
		*s.policies.at(number) = policy{terms: *t, class: s.class(t.Limits)}
	}
	return number
}

// policy returns the policy of a number.
func (s *settings) policy(number uint32) *policy { return s.policies.at(number) }

// drop removes an endpoint from a policy.
func (s *settings) drop(number uint32) { s.policies.drop(number) }

// class returns the number of a class.
func (s *settings) class(limits BeliefLimits) uint32 {
	for i := range s.classes {
		if s.classes[i] == limits {
			return uint32(i)
		}
	}
	s.classes = append(s.classes, limits)
	return uint32(len(s.classes) - 1)
}

// classCount is how many classes there are.
func (s *settings) classCount() int { return len(s.classes) }

// doubt returns the limits of doubt of a class.
func (s *settings) doubt(class uint32) Doubt {
	return s.classes[class].Doubt.or(&s.options.Doubt)
}

// staleness is how long a checker may be silent before its votes on endpoints of
// a class no longer count.
func (s *settings) staleness(class uint32) time.Duration {
	if own := s.classes[class].Staleness; own > 0 {
		return own
	}
	return s.options.Staleness
}

// longestStaleness is the time after which no vote counts, whatever its class.
func (s *settings) longestStaleness() time.Duration {
	longest := time.Duration(0)
	for class := range s.classes {
		longest = max(longest, s.staleness(uint32(class)))
	}
	return longest
}

// countsAs returns the status that a vote counts as. Envoy reports an endpoint that
// answers that it is degraded as UNHEALTHY, with the status code of the answer.
func (p *policy) countsAs(said health.Status, code uint16) health.Status {
	if said == health.Unhealthy && code != 0 && p.DegradedWhen.Has(code) {
		return health.Degraded
	}
	return said
}
