package config

import (
	"fmt"
	"math"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// Bounds of checker_capacities.
const (
	minWeight = 0.01
	maxWeight = 100
	maxRate   = 1e9
)

// capacities checks the capacities of checkers.
func (c *checks) capacities(field string, list []*configv1.CheckerCapacity) {
	for i, each := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		c.glob(at+".node_id_glob", each.GetNodeIdGlob(), "checkers")
		if weight := each.GetWeight(); (weight != 0 || c.root.Has(at+".weight")) && !(weight >= minWeight && weight <= maxWeight) {
			c.add(at+".weight", "is %g: from %g to %d is possible, 1 is usual", weight, minWeight, maxWeight)
		}
		if rate := each.GetMaxChecksPerSecond(); (rate != 0 || c.root.Has(at+".max_checks_per_second")) && !(rate > 0 && rate <= maxRate) || math.IsNaN(rate) {
			c.add(at+".max_checks_per_second", "is %g: it must be above 0; remove it for no limit", rate)
		}
		if each.GetWeight() == 0 && each.GetMaxChecksPerSecond() == 0 && each.GetNodeIdGlob() != "" {
			c.warn(at, "gives the checkers neither weight nor max_checks_per_second: it only keeps what follows, and their nodes' hdsd.weight, from them")
		}
	}
}
