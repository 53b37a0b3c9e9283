package sim

import (
	"fmt"
	"time"

	"hdsd/aggregate"
	"hdsd/assign"
	"hdsd/health"
	"hdsd/test/sim/truth"
)

// contender judges by one rule in one run. All contenders of a run get the same
// reports.
type contender struct {
	rule       Rule
	aggregator *aggregate.Aggregator
	verdicts   []health.Verdict // as stored: status and since
	judge      *judge
	changed    []string                  // checkers that became blind or doubted, or no longer are, not handled yet
	divided    []aggregate.DividedChange // not handled yet
}

func newContender(r Rule, world *truth.World) *contender {
	return &contender{rule: r, verdicts: make([]health.Verdict, world.Endpoints), judge: newJudge(world)}
}

// start starts again with the stored verdicts.
func (c *contender) start(list []assign.Endpoint) {
	c.aggregator, c.changed, c.divided = aggregate.New(aggregate.Options{Doubt: c.rule.Doubt}), nil, nil
	for i, e := range list {
		c.aggregator.Set(aggregate.Endpoint{
			ID: e.ID, Timing: c.rule.timing(), Rule: c.rule.Rule, Zone: e.Locality, Cluster: fmt.Sprint(e.ClusterHash),
		}, c.verdicts[i])
	}
}

// seat applies a change of the plan.
func (c *contender) seat(now time.Time, m *assign.Move) {
	for _, id := range m.Add {
		c.aggregator.Assign(now, id, m.Checker)
	}
	for _, id := range m.Remove {
		c.aggregator.Unassign(now, id, m.Checker)
	}
}

// tick does what is due up to a step.
func (c *contender) tick(step int) {
	if due, ok := c.aggregator.NextDeadline(); ok && !due.After(at(step)) {
		c.apply(step, c.aggregator.Tick(at(step)))
	}
}

// apply records the verdicts, and what the plan depends on.
func (c *contender) apply(step int, effects aggregate.Effects) {
	for _, b := range effects.Blindness {
		c.changed = append(c.changed, b.Checker)
	}
	for _, d := range effects.Doubts {
		if d.Checker != "" {
			c.changed = append(c.changed, d.Checker)
		}
	}
	c.divided = append(c.divided, effects.Divided...)
	for i := range effects.Changes {
		x := &effects.Changes[i]
		c.verdicts[x.Endpoint] = health.Verdict{Status: x.To, Since: at(step)}
		c.judge.changed(step, x)
	}
}
