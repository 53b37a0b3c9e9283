package coordinator

import "hdsd/aggregate"

// tellMassFailures tells where much seemed to fail at once, and how many endpoints
// are held down as they flap.
func (c *core) tellMassFailures(failures []aggregate.MassFailure) {
	c.metrics.damped.Set(float64(c.judge.Damped()))
	c.metrics.unobserved.Set(float64(c.judge.Unobserved()))
	for _, f := range failures {
		if !f.Over {
			c.metrics.massFailures.Inc()
			c.metrics.massFailuresSeen.Inc()
			c.log.Error().Str("event", "mass_failure").Str("cluster", f.Cluster).
				Msg("much of a cluster seems to fail at once, which waits for verdict.mass_failure.hold: " + f.Reason)
		} else {
			c.metrics.massFailures.Dec()
			c.log.Warn().Str("event", "mass_failure_over").Str("cluster", f.Cluster).
				Msg("the alarm for a cluster is over: " + f.Reason)
		}
	}
}
