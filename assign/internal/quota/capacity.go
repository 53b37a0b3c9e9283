package quota

import (
	"math"

	"hdsd/health"
)

// Weights are counted in thousandths.
const (
	FullWeight  = 1000
	leastWeight = 1
	mostWeight  = 100 * FullWeight
)

// Unlimited is the ceiling of a checker without one.
const Unlimited = math.MaxInt64

// Capacity is the load that a checker can take.
type Capacity struct {
	Weight  int64 // in thousandths
	Ceiling int64 // checks in 1,000 seconds
}

// Default is the capacity of a checker whose description is unknown.
var Default = Capacity{FullWeight, Unlimited}

// CapacityOf returns the capacity in a checker's description.
func CapacityOf(c *health.Checker) Capacity {
	capacity := Default
	if c.Weight > 0 {
		capacity.Weight = int64(math.Round(min(max(c.Weight*FullWeight, leastWeight), mostWeight)))
	}
	if c.MaxChecksPerSecond > 0 && c.MaxChecksPerSecond < 1e9 { // a higher ceiling is no limit
		capacity.Ceiling = int64(math.Round(c.MaxChecksPerSecond * 1000))
	}
	return capacity
}
