package sim

import (
	"fmt"
	"time"

	"hdsd/aggregate"
	"hdsd/assign"
	"hdsd/health"
	"hdsd/test/sim/truth"
)

// contender judges by one rule in one run. All of a run are told the same.
type contender struct {
	rule       Rule
	aggregator *aggregate.Aggregator
	verdicts   []health.Verdict // as stored: status and since
	judge      *judge
}

func newContender(r Rule, world *truth.World) *contender {
	return &contender{rule: r, verdicts: make([]health.Verdict, world.Endpoints), judge: newJudge(world)}
}

// start begins anew with the verdicts that were stored.
func (c *contender) start(list []assign.Endpoint) {
	c.aggregator = aggregate.New(aggregate.Options{Doubt: c.rule.Doubt})
	for i, e := range list {
		c.aggregator.Set(aggregate.Endpoint{
			ID: e.ID, Timing: c.rule.timing(), Rule: c.rule.Rule, Zone: e.Locality, Cluster: fmt.Sprint(e.ClusterHash),
		}, c.verdicts[i])
	}
}

// seat takes over what a plan changed.
func (c *contender) seat(now time.Time, m *assign.Move) {
	for _, id := range m.Add {
		c.aggregator.Assign(now, id, m.Checker)
	}
	for _, id := range m.Remove {
		c.aggregator.Unassign(now, id, m.Checker)
	}
}

// tick does what has come due up to a step.
func (c *contender) tick(step int) {
	if due, ok := c.aggregator.NextDeadline(); ok && !due.After(at(step)) {
		c.take(step, c.aggregator.Tick(at(step)))
	}
}

func (c *contender) take(step int, changes []aggregate.Change) {
	for i := range changes {
		x := &changes[i]
		c.verdicts[x.Endpoint] = health.Verdict{Status: x.To, Since: at(step)}
		c.judge.changed(step, x)
	}
}
