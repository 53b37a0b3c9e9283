package coordinator

// tellAlarms tells where much seemed to fail at once, and how many endpoints
// are held down as they flap.
func (c *core) tellAlarms() {
	c.metrics.damped.Set(float64(c.judge.Damped()))
	c.metrics.unobserved.Set(float64(c.judge.Unobserved()))
	for _, a := range c.judge.Alarms() {
		if a.Raised {
			c.metrics.massFailures.Inc()
			c.metrics.massFailuresSeen.Inc()
			c.log.Error().Str("event", "mass_failure").Str("cluster", a.Cluster).
				Msg("much of a cluster seems to fail at once, which waits for verdict.mass_failure.hold: " + a.Reason)
		} else {
			c.metrics.massFailures.Dec()
			c.log.Warn().Str("event", "mass_failure_over").Str("cluster", a.Cluster).
				Msg("the alarm for a cluster is over: " + a.Reason)
		}
	}
}
