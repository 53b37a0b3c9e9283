package fleet

import (
	"maps"
	"slices"
	"time"

	"hdsd/assign"
)

// planEvery is the shortest time between two plans for checkers that come and go. Each
// such plan costs as much as what moves, however often the same checkers move it.
const planEvery = 100 * time.Millisecond

// churn is the changes of the fleet since the last plan.
type churn struct {
	nextPlan time.Time       // when the next plan may be made
	moved    map[string]bool // checkers that came or were lost
	left     map[string]bool // checkers whose seats are given up
	waiting  []string        // checkers that wait for their first specifier, in order
}

func newChurn() churn { return churn{moved: map[string]bool{}, left: map[string]bool{}} }

func (c *churn) pending() bool { return len(c.moved)+len(c.left) > 0 }

// planChurn plans for changed checkers, unless the last such plan was just made: then Tick does
// it.
func (f *Fleet) planChurn(now time.Time) {
	if f.churn.pending() && !now.Before(f.churn.nextPlan) {
		f.replan(now, assign.Change{})
	}
}

// drain returns and clears the changes that the plan does not know yet.
func (c *churn) drain(now time.Time, f *Fleet) assign.Change {
	change, present := assign.Change{Leave: slices.Sorted(maps.Keys(c.left))}, f.muster()
	for _, k := range f.weigh() {
		if !c.moved[k.ID] {
			change.Join = append(change.Join, k)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.moved)) {
		switch known := f.checkers[id]; {
		case known == nil: // already gone again
		case known.onProbation():
		case known.connected:
			change.Join = append(change.Join, known.Checker)
		case f.spares(now, id, present):
			f.withoutSubstitutes(now, id)
			change.Held = append(change.Held, id)
		default:
			change.Lost = append(change.Lost, id)
		}
	}
	f.out.Specify = append(f.out.Specify, c.waiting...)
	clear(c.moved)
	clear(c.left)
	c.waiting, c.nextPlan = nil, now.Add(planEvery)
	return change
}
