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
	for i, capacity := range list {
		prefix := fmt.Sprintf("%s[%d]", field, i)
		c.glob(prefix+".node_id_glob", capacity.GetNodeIdGlob(), "checkers")
		if weight := capacity.GetWeight(); (weight != 0 || c.root.Has(prefix+".weight")) && !(weight >= minWeight && weight <= maxWeight) {
			c.add(prefix+".weight", "is %g: from %g to %d is possible, 1 is usual", weight, minWeight, maxWeight)
		}
		if rate := capacity.GetMaxChecksPerSecond(); (rate != 0 || c.root.Has(prefix+".max_checks_per_second")) && !(rate > 0 && rate <= maxRate) || math.IsNaN(rate) {
			c.add(prefix+".max_checks_per_second", "is %g: it must be above 0; remove it for no limit", rate)
		}
		if capacity.GetWeight() == 0 && capacity.GetMaxChecksPerSecond() == 0 && capacity.GetNodeIdGlob() != "" {
			c.warn(prefix, "gives the checkers neither weight nor max_checks_per_second: it only keeps what follows, and their nodes' hdsd.weight, from them")
		}
	}
}
