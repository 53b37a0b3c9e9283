package sim

import (
	"time"

	"hdsd/aggregate"
)

// Rule is a way from votes to a verdict.
type Rule struct {
	Name, What string
	Rule       aggregate.Rule
	Doubt      aggregate.Doubt
	Threshold  int // unhealthy_threshold of the health checks; 0 is 2
}

// Rules returns all rules. The first is hdsd's default.
func Rules() []Rule {
	nobody := aggregate.Doubt{Disagreements: 1 << 30, PathDisagreements: 1 << 30}
	return []Rule{
		{Name: "majority", What: "the side with more votes; the default"},
		{Name: "score", What: "down by majority when its reports in a row are enough: 5 of three checkers, 4 of one alone; unhealthy_threshold 1", Rule: aggregate.Rule{Kind: aggregate.Score}, Threshold: 1},
		{Name: "undoubting", What: "majority, but every checker and every path between zones is believed, whatever the others say", Doubt: nobody},
		{Name: "any", What: "one down is enough", Rule: aggregate.Rule{Kind: aggregate.Any}},
		{Name: "all", What: "down only if all are", Rule: aggregate.Rule{Kind: aggregate.All}},
		{Name: "at_least 2", What: "down as soon as two are", Rule: aggregate.Rule{Kind: aggregate.AtLeast, AtLeast: 2}},
		{Name: "share 18 %", What: "up as long as more than 18 % say so", Rule: aggregate.Rule{Kind: aggregate.Share, Share: 0.18}},
		{Name: "zone_majority", What: "the side with more zones, each by the majority of its own checkers", Rule: aggregate.Rule{Kind: aggregate.ZoneMajority}},
	}
}

func (r *Rule) threshold() int {
	if r.Threshold == 0 {
		return 2
	}
	return r.Threshold
}

// timing returns the timing of the health checks.
func (r *Rule) timing() aggregate.Timing {
	return aggregate.Timing{
		Interval: time.Second, Timeout: 500 * time.Millisecond, InitialJitter: time.Second,
		UnhealthyThreshold: uint32(r.threshold()), ReportInterval: time.Second,
	}
}
