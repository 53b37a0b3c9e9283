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
	describe   func(checker string) *health.Checker // nil: it is not there
	settling   bool
	waiting    []string // doubted checkers that have no substitutes yet
	covered    []int    // steps at which doubted checkers got substitutes, latest last
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
	c.cover(step)
}

// Substitutes for doubted checkers come for so many checkers in so many steps.
const (
	coveredAtOnce = 2
	coverPace     = 5 * round
)

// cover adds checkers beside those that are blind or doubted, and in zones that are
// divided, as fleet does. The plan is the same for all rules of a run, so the
// first rule decides.
func (c *coordinator) cover(step int) {
	first := c.contenders[0]
	if c.settling || len(first.changed)+len(first.divided)+len(c.waiting) == 0 {
		return
	}
	var change assign.Change
	for _, id := range first.changed {
		c.waiting = slices.DeleteFunc(c.waiting, func(waits string) bool { return waits == id })
		switch {
		case first.aggregator.DoubtReason(id) != "":
			c.waiting = append(c.waiting, id)
			continue
		case first.aggregator.BlindReason(id) != "":
			change.Blind = append(change.Blind, id)
		}
		if k := c.describe(id); k != nil {
			change.Join = append(change.Join, *k)
		}
	}
	for _, d := range first.divided {
		if d.Over {
			change.Undivided = append(change.Undivided, d.Zone)
		} else {
			change.Divided = append(change.Divided, d.Zone)
		}
	}
	first.changed, first.divided = nil, nil
	c.covered = slices.DeleteFunc(c.covered, func(at int) bool { return at <= step-coverPace })
	for len(c.waiting) > 0 && len(c.covered) < coveredAtOnce {
		change.Doubted, c.waiting = append(change.Doubted, c.waiting[0]), c.waiting[1:]
		c.covered = append(c.covered, step)
	}
	if len(change.Join)+len(change.Blind)+len(change.Doubted)+len(change.Divided)+len(change.Undivided) > 0 {
		c.apply(step, change)
	}
}

// plan returns the endpoints of a checker, in the planner's order.
func (c *coordinator) plan(checker string) []health.EndpointID {
	return slices.Collect(c.planner.Endpoints(checker))
}
