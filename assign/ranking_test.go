package assign_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hdsd/assign"
	"hdsd/health"
)

// twin is a planner that has a plan, and nothing that another one remembers.
func twin(plan map[string][]health.Hash, all []assign.Endpoint, fleet []health.Checker) *assign.Planner {
	p := assign.New(assign.Options{})
	p.Class(assign.Class{})
	p.Restore(plan)
	p.Apply(assign.Change{Settling: true, Upsert: all, Join: fleet})
	p.Apply(assign.Change{})
	return p
}

// TestRemembersNothingWrong holds a planner with a history against one that was
// given its plan: what it remembers of its fleet must not matter. Few zones have
// rankings that are kept, many have not.
func TestRemembersNothingWrong(t *testing.T) {
	for _, zones := range []int{5, 20} {
		t.Run(fmt.Sprint(zones), func(t *testing.T) {
			random := rand.New(rand.NewPCG(5, uint64(zones)))
			fleet, all := checkers(120, zones), endpoints(3_000, zones, 0, 3)
			p := twin(nil, all, fleet)
			for n := range 25 {
				i := random.IntN(len(fleet))
				q := twin(p.Plan(), all, fleet)
				if p.Digest() != q.Digest() {
					t.Fatalf("step %d: the twin has another plan", n)
				}
				var ch assign.Change
				switch random.IntN(4) {
				case 0:
					fleet = append(fleet, checker(1000+n, zones))
					ch.Join = fleet[len(fleet)-1:]
				case 1:
					fleet[i].Weight = []float64{1, 1, 2}[random.IntN(3)]
					ch.Join = fleet[i : i+1]
				default:
					ch.Leave = names(fleet[i : i+1])
				}
				p.Apply(ch)
				if q.Apply(ch); p.Digest() != q.Digest() {
					t.Fatalf("step %d: %+v has another outcome for the twin", n, ch)
				}
				fleet = slices.DeleteFunc(fleet, func(c health.Checker) bool { return slices.Contains(ch.Leave, c.ID) })
			}
		})
	}
}
