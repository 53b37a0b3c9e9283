package aggregate

import (
	"math"
	"time"

	"hdsd/health"
)

// budgets keeps the wait budget of each endpoint: how long its verdict may wait although the
// votes that count ask for another. All waits draw on it: for checkers that connect, warm up or
// are absent, for confirmation, and for the end of a mass failure. A new verdict refills it,
// and so does a majority of the votes past their warm-up that does not contradict the verdict.
// So waits that begin over and over end, too.
type budgets struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
}

// largestBudget is small enough to tell two ticks apart by their low 32 bits.
const largestBudget = math.MaxInt32

// total returns the whole budget of an endpoint in milliseconds. It covers the time for a voter
// to come back, warm up and be heard, and for a change to be confirmed.
func (b *budgets) total(e *endpoint) uint32 {
	p := b.settings.ofEndpoint(e)
	confirmed := max(b.settings.staleness(p.class), p.roundTime())
	return uint32(min(uint64(milliseconds(b.settings.awaitFor()+confirmed+p.MassHold))+uint64(p.warmUp), largestBudget))
}

// remaining returns the rest of a budget that is being spent.
func (b *budgets) remaining(e *endpoint) int32 {
	return int32(e.budget - uint32(b.clock.watchedTick()))
}

// spent returns the recent waiting time of the verdict.
func (b *budgets) spent(e *endpoint) time.Duration {
	switch whole := b.total(e); {
	case e.has(budgetSpent):
		return fromMilliseconds(whole)
	case e.has(spendsBudget):
		return fromMilliseconds(max(whole, uint32(max(0, b.remaining(e)))) - uint32(max(0, b.remaining(e))))
	default:
		return fromMilliseconds(e.budget)
	}
}

// spend starts to count the time. It sets no deadline the first time: the awaited
// votes have an earlier one, at which the endpoint is decided again. So after a
// start, most endpoints need no deadline of their own.
func (b *budgets) spend(id health.EndpointID, e *endpoint) {
	first := e.budget == 0
	switch {
	case e.has(budgetSpent):
		return
	case !e.has(spendsBudget):
		e.set(spendsBudget)
		e.budget = uint32(b.clock.watchedTick()) + max(b.total(e), e.budget) - e.budget
	}
	if !e.has(budgetScheduled) && !first {
		b.schedule(id, e)
	}
}

// schedule sets the deadline at which the budget is spent.
func (b *budgets) schedule(id health.EndpointID, e *endpoint) {
	t := b.clock.tickAfter(0) + tick(uint32(b.remaining(e)))
	e.set(budgetScheduled)
	e.budgetDue = uint32(t)
	b.deadlines.add(t, deadline{id, dueBudget})
}

// stop stops counting the time.
func (b *budgets) stop(e *endpoint) {
	if !e.has(spendsBudget) {
		return
	}
	e.clear(spendsBudget | budgetScheduled)
	remaining := uint32(b.remaining(e))
	e.budget = max(b.total(e), remaining) - remaining
}

// due ends the budget of an endpoint. Time in which this process stood still does not
// count: all checkers were silent then, and come back one after the other.
func (b *budgets) due(id health.EndpointID, t tick) {
	e := b.roster.endpoint(id)
	if e == nil || !e.has(budgetScheduled) || e.budgetDue != uint32(t) {
		return
	}
	if b.remaining(e) > 0 {
		b.schedule(id, e)
		return
	}
	e.clear(spendsBudget | budgetScheduled)
	e.set(budgetSpent)
	b.roster.mark(id, e)
}

// check ends a budget that is spent and has no deadline.
func (b *budgets) check(e *endpoint) {
	if e.has(spendsBudget) && !e.has(budgetScheduled) && b.remaining(e) <= 0 {
		e.clear(spendsBudget)
		e.set(budgetSpent)
	}
}

// untouched reports whether the whole budget is left.
func (b *budgets) untouched(e *endpoint) bool {
	return !e.has(spendsBudget|budgetSpent) && e.budget == 0
}

// refill makes a budget whole again.
func (b *budgets) refill(e *endpoint) {
	e.clear(spendsBudget | budgetScheduled | budgetSpent)
	e.budget = 0
}
