package aggregate

import (
	"math"
	"time"
)

// terms is the rule and the timing of an endpoint. Usually, all endpoints of a cluster have the
// same terms. All times are in milliseconds.
type terms struct {
	Rule
	warmUp     uint32 // from a pair's first vote until its downs count
	firstProbe uint32 // until a checker has reported the result of its first probe
	lingering  uint32 // time for which reports may still describe the old host after it was re-created
	round      uint32 // until a checker has a new result
	slack      uint32 // time by which a new result may come too early
	recovery   uint32 // from the report of a first passed probe after a down until the endpoint is up; 0 if it is up at once
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
	if e.Timing.HealthyThreshold > 1 {
		t.recovery = e.Timing.recovery()
	}
	return t
}

// recovery returns the longest time, in milliseconds, for which an endpoint that was down, and
// whose probes all pass, is still reported as down: as many rounds as the threshold.
func (t Timing) recovery() uint32 {
	rounds := time.Duration(t.HealthyThreshold)
	round := min(t.Interval, longestTiming) + min(t.Timeout, longestTiming)
	return milliseconds(min(t.ReportInterval, longestTiming) + rounds*min(round, longestTiming/rounds+1))
}

// longestTiming is longer than milliseconds can hold, and far from an overflow.
const longestTiming = 50 * 24 * time.Hour

// warmUp returns the time, in milliseconds, after a pair's first vote in which its downs do not
// count. By then, its first probe must have ended and been reported. As many probes as the
// threshold must have confirmed it, with a round to spare.
func (t Timing) warmUp() uint32 {
	rounds := time.Duration(t.UnhealthyThreshold) + 1
	return milliseconds(min(t.InitialJitter, longestTiming) + min(t.Timeout, longestTiming) + min(t.ReportInterval, longestTiming) +
		rounds*min(t.Interval, longestTiming/rounds+1))
}

// policy holds terms that endpoints share.
type policy struct {
	terms
	class uint32
}

// roundTime returns the time in which a checker has a new result.
func (p *policy) roundTime() time.Duration { return fromMilliseconds(p.round) }

// settings holds the options and the terms of all endpoints. Endpoints with the same
// belief limits form a class.
type settings struct {
	options  Options
	policies pool[terms, policy]
	classes  []BeliefLimits // by number; classes are few and never removed
}

func newSettings(o Options) settings {
	return settings{options: o.withDefaults(), classes: []BeliefLimits{{}}}
}

// configure changes the options, and returns whether the limits of doubt changed.
func (s *settings) configure(o Options) bool {
	previous := s.options.Doubt
	s.options = o.withDefaults()
	return s.options.Doubt != previous
}

// awaitFor returns the time to wait for a voter without a vote.
func (s *settings) awaitFor() time.Duration { return s.options.AwaitFor }

// zoneViews reports whether zone views are enabled.
func (s *settings) zoneViews() bool { return s.options.ZoneViews }

// ofEndpoint returns an endpoint's policy.
func (s *settings) ofEndpoint(e *endpoint) *policy { return s.policies.get(e.policy) }

// use adds an endpoint to a policy and returns its number.
func (s *settings) use(t *terms) uint32 {
	number, first := s.policies.use(*t)
	if first {
		*s.policies.get(number) = policy{terms: *t, class: s.class(t.Limits)}
	}
	return number
}

// policy returns the policy with the given number.
func (s *settings) policy(number uint32) *policy { return s.policies.get(number) }

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

// classCount returns the number of classes.
func (s *settings) classCount() int { return len(s.classes) }

// doubt returns the limits of doubt of a class.
func (s *settings) doubt(class uint32) Doubt {
	return s.classes[class].Doubt.or(&s.options.Doubt)
}

// staleness returns the time for which a silent checker's votes on endpoints of a class still
// count.
func (s *settings) staleness(class uint32) time.Duration {
	if classStaleness := s.classes[class].Staleness; classStaleness > 0 {
		return classStaleness
	}
	return s.options.Staleness
}

// quorumHold returns the shortest QuorumHold of a class that exceeds a silence; 0 if there is
// none.
func (s *settings) quorumHold(class uint32, silence time.Duration) (shortest time.Duration) {
	for i := range s.policies.entries {
		p := &s.policies.entries[i]
		if hold := p.value.QuorumHold; p.uses > 0 && p.value.class == class && hold >= silence && (shortest == 0 || hold < shortest) {
			shortest = hold
		}
	}
	return shortest
}

// longestRound returns the longest round of the endpoints of a class.
func (s *settings) longestRound(class uint32) time.Duration {
	longest := time.Millisecond
	for i := range s.policies.entries {
		if p := &s.policies.entries[i]; p.uses > 0 && p.value.class == class {
			longest = max(longest, p.value.roundTime())
		}
	}
	return longest
}

// longestStaleness returns the time after which no vote counts in any class.
func (s *settings) longestStaleness() time.Duration {
	longest := time.Duration(0)
	for class := range s.classes {
		longest = max(longest, s.staleness(uint32(class)))
	}
	return longest
}
