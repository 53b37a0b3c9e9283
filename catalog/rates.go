package catalog

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// rate returns the checks of one endpoint that is up, by one checker in 1,000 seconds.
func (c *Cluster) rate() int64 {
	sum := 0.0
	for _, check := range c.Source.HealthChecks {
		used := check.GetInterval()
		if c.NoTraffic {
			used = cmp.Or(check.GetNoTrafficHealthyInterval(), check.GetNoTrafficInterval(), used)
		}
		if interval := max(used.AsDuration(), c.rules.Options.MinInterval).Seconds(); interval > 0 {
			sum += 1000 / interval
		}
	}
	return int64(math.Round(sum))
}

// Raised returns the reason why checkers probe less often than the health checks demand; empty
// if they do not.
func (c *Cluster) Raised() string {
	if c.Checked == nil || c.Checked.Raised == 0 {
		return ""
	}
	return fmt.Sprintf("health_checks: an interval of %v is shorter than checkers.probe_targets.min_interval: checkers probe every %v", c.Checked.Raised, c.rules.Options.MinInterval)
}

// Burst returns the checks of one endpoint by one checker in 1,000 seconds while a checker with
// many begins all of them at once: its probes come within the initial_jitter, or within a
// second if that is shorter, and all later ones follow at the same distance. It equals Rate if
// these are spread over the interval.
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
