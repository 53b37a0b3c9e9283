package sim

import (
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at returns the time of a step.
func at(step int) time.Time { return epoch.Add(time.Duration(step) * 100 * time.Millisecond) }

// coordinator joins the pure packages as hdsd does: plan to specifiers, reports to
// verdicts. It knows only the reports of observers.
type coordinator struct {
	planner    *assign.Planner
	contenders []*contender
	specify    func(m *assign.Move)
	describe   func(checker string) health.Checker
	settling   bool
}

// apply changes the plan and applies the moves. A new checker starts before the ones
// that it replaces end, but no handover waits for its votes.
func (c *coordinator) apply(step int, change assign.Change) {
	change.Settling = c.settling
	moves := c.planner.Apply(change).Moves
	for i := range moves {
		for _, x := range c.contenders {
			x.seat(at(step), &moves[i])
		}
		c.specify(&moves[i])
	}
	for _, x := range c.contenders {
		x.apply(step, x.aggregator.Tick(at(step)))
	}
}

func (c *coordinator) connected(step int, checker health.Checker) {
	c.apply(step, assign.Change{Join: []health.Checker{checker}})
	for _, x := range c.contenders {
		x.aggregator.Connected(at(step), checker)
	}
}

func (c *coordinator) lost(step int, checker string) {
	for _, x := range c.contenders {
		x.aggregator.Lost(checker)
	}
	c.apply(step, assign.Change{Lost: []string{checker}})
}

func (c *coordinator) reported(step int, checker string, votes []health.Vote) {
	for _, x := range c.contenders {
		x.apply(step, x.aggregator.Report(at(step), checker, votes))
	}
}

func (c *coordinator) tick(step int) {
	for _, x := range c.contenders {
		x.tick(step)
	}
	c.outnumber(step)
}

// outnumber adds checkers beside blind ones. The plan is the same for all rules of a
// run, so the first rule decides who is blind.
func (c *coordinator) outnumber(step int) {
	first := c.contenders[0]
	if c.settling || len(first.blindness) == 0 {
		return
	}
	var change assign.Change
	for _, id := range first.blindness {
		if first.aggregator.BlindReason(id) != "" {
			change.Blind = append(change.Blind, id)
		} else {
			change.Join = append(change.Join, c.describe(id))
		}
	}
	first.blindness = nil
	c.apply(step, change)
}

// plan returns the endpoints of a checker, in the planner's order.
func (c *coordinator) plan(checker string) []health.EndpointID {
	return slices.Collect(c.planner.Endpoints(checker))
}
