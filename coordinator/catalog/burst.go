package catalog

import (
	"math"
	"time"
)

// Burst gives the checks of one endpoint by one checker in 1,000 seconds, where a checker that has many
// begins with all of them at once: its probes come within the initial_jitter, or within a second if that is
// shorter, and all later ones follow at the same distance. It is Rate where these are spread over the interval.
func (c *Cluster) Burst() int64 {
	if c.Checked == nil {
		return c.Rate
	}
	sum := 0.0
	for _, check := range c.Checked.Checks() {
		sum += 1000 / max(check.GetInitialJitter().AsDuration(), time.Second).Seconds()
	}
	return max(c.Rate, int64(math.Round(sum)))
}
