package sim

import (
	"fmt"

	"hdsd/assign"
	"hdsd/health"
)

// mostWeight is the most that a checker may weigh, compared with the median
// (fleet).
const mostWeight = 4

// liars returns the scenarios in which one checker lies in every report: up or down of
// everything, with the weight of the others or the most that hdsd lets count, while
// nothing else is wrong, its zone is cut off or its zone fails.
func liars() (all []Scenario) {
	for _, says := range []string{"up", "down"} {
		for _, weight := range []float64{1, mostWeight} {
			for _, while := range []struct {
				name, what string
				start      func(*fleet)
			}{
				{"", "", func(*fleet) {}},
				{", zone cut off", ", while its zone and the others do not reach each other", (*fleet).partition},
				{", zone fails", ", while every endpoint of its zone is down", (*fleet).failZone},
			} {
				name, heavy := "liar says "+says+while.name, ""
				if weight > 1 {
					name, heavy = "heavy "+name, fmt.Sprintf(" with %.0f times the weight of others", weight)
				}
				what := fmt.Sprintf("one checker%s says %s of everything%s", heavy, says, while.what)
				all = append(all, Scenario{name, what, func(f *fleet) {
					f.lie(says == "up", weight)
					while.start(f)
				}})
			}
		}
	}
	return all
}

// lie makes one checker of the zone that is in trouble say the same of everything.
func (f *fleet) lie(up bool, weight float64) {
	const liar = deadZone
	if up {
		f.world.Stick(liar)
	} else {
		f.world.Break(liar)
	}
	f.weights[liar] = weight
	f.coordinator.apply(0, assign.Change{Join: []health.Checker{f.checker(liar)}})
	f.moved, f.specifiers = 0, 0
}
