package sim

import (
	"fmt"
	"slices"
	"time"

	"hdsd/aggregate"
	"hdsd/assign"
	"hdsd/health"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at is the time of a step.
func at(step int) time.Time { return epoch.Add(time.Duration(step) * 100 * time.Millisecond) }

var timing = aggregate.Timing{
	Interval: time.Second, Timeout: 500 * time.Millisecond, InitialJitter: time.Second,
	UnhealthyThreshold: unhealthyThreshold, ReportInterval: time.Second,
}

// coordinator joins the pure packages as hdsd does: plan to specifiers,
// reports to verdicts. It knows nothing but what observers tell it.
type coordinator struct {
	planner    *assign.Planner
	aggregator *aggregate.Aggregator
	verdicts   []health.Verdict // as stored: status and since
	changed    func(step int, c aggregate.Change)
	specify    func(checker string, add, remove []health.EndpointID)
	settling   bool
	moved      int
}

func newCoordinator() *coordinator {
	return &coordinator{planner: assign.New(assign.Options{}), aggregator: aggregate.New(aggregate.Options{})}
}

// endpoints makes them known, with the last verdicts where there are some.
func (c *coordinator) endpoints(list []assign.Endpoint, last []health.Verdict) {
	c.verdicts = make([]health.Verdict, len(list))
	copy(c.verdicts, last)
	for i, e := range list {
		c.aggregator.Set(aggregate.Endpoint{ID: e.ID, Timing: timing, Zone: e.Locality}, c.verdicts[i])
	}
}

// apply plans anew and hands on what moved. A checker that is added begins to
// check before the ones that it replaces end, but no longer.
func (c *coordinator) apply(step int, change assign.Change) {
	change.Settling = c.settling
	for _, m := range c.planner.Apply(change).Moves {
		for _, id := range m.Add {
			c.aggregator.Assign(at(step), id, m.Checker)
		}
		for _, id := range m.Remove {
			c.aggregator.Unassign(at(step), id, m.Checker)
		}
		c.moved += len(m.Add)
		if c.specify != nil {
			c.specify(m.Checker, m.Add, m.Remove)
		}
	}
	c.take(step, c.aggregator.Tick(at(step)))
}

func (c *coordinator) connected(step int, checker health.Checker) {
	c.apply(step, assign.Change{Join: []health.Checker{checker}})
	c.aggregator.Connected(at(step), checker)
}

func (c *coordinator) lost(step int, checker string) {
	c.aggregator.Lost(checker)
	c.apply(step, assign.Change{Lost: []string{checker}})
}

func (c *coordinator) reported(step int, checker string, votes []health.Vote) {
	c.take(step, c.aggregator.Report(at(step), checker, votes))
}

// tick does what has come due up to a step.
func (c *coordinator) tick(step int) {
	if due, ok := c.aggregator.NextDeadline(); ok && !due.After(at(step)) {
		c.take(step, c.aggregator.Tick(at(step)))
	}
}

func (c *coordinator) take(step int, changes []aggregate.Change) {
	for _, x := range changes {
		c.verdicts[x.Endpoint] = health.Verdict{Status: x.To, Since: at(step)}
		if c.changed != nil {
			c.changed(step, x)
		}
	}
}

// plan is what each checker has, in the planner's order.
func (c *coordinator) plan(checker string) []health.EndpointID {
	return slices.Collect(c.planner.Endpoints(checker))
}

func checkerName(number int) string { return fmt.Sprintf("checker-%03d", number) }
