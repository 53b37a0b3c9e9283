package check

import (
	"errors"
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// defaultInterval is Envoy's default for clusters without traffic.
const defaultInterval = time.Minute

// Policy is the timing of probes, and the number of outcomes that change the health.
type Policy struct {
	Timeout            time.Duration
	Interval           time.Duration // after a failed probe
	HealthyInterval    time.Duration // after a passed probe
	EdgeInterval       time.Duration // after a failed probe, with a change pending
	HealthyEdge        time.Duration // after a passed probe, with a change pending
	InitialJitter      time.Duration
	Jitter             time.Duration
	JitterPercent      uint32
	UnhealthyThreshold uint32
	HealthyThreshold   uint32
}

// Random returns a number in [0, n), n > 0.
type Random func(n int64) int64

// First returns the delay before the first probe.
func (p *Policy) First(random Random) time.Duration {
	if p.InitialJitter <= 0 {
		return 0
	}
	return time.Duration(random(int64(p.InitialJitter)))
}

// Next returns the delay from the end of a probe to the next.
func (p *Policy) Next(o Outcome, pending bool, random Random) time.Duration {
	base := p.Interval
	switch passed := o == Passed || o == Degraded; {
	case passed && pending:
		base = p.HealthyEdge
	case passed:
		base = p.HealthyInterval
	case pending:
		base = p.EdgeInterval
	}
	delay := base
	// Compute with floats, because the product may overflow.
	if share := time.Duration(float64(base) / 100 * float64(p.JitterPercent)); share > 0 {
		delay += time.Duration(random(int64(share)))
	}
	if p.Jitter > 0 {
		delay += time.Duration(random(int64(p.Jitter)))
	}
	if delay < 0 { // overflow
		delay = longest
	}
	return min(max(delay, time.Millisecond), longest)
}

// longest keeps sums with a time in range.
const longest = 10 * 365 * 24 * time.Hour

// newPolicy reads the timing of a check. traffic means that Envoy counts traffic in the cluster.
func newPolicy(c *corev3.HealthCheck, traffic bool) (Policy, error) {
	p := Policy{
		UnhealthyThreshold: c.GetUnhealthyThreshold().GetValue(),
		HealthyThreshold:   c.GetHealthyThreshold().GetValue(),
		JitterPercent:      c.GetIntervalJitterPercent(),
	}
	if p.UnhealthyThreshold == 0 || p.HealthyThreshold == 0 {
		return p, fmt.Errorf("unhealthy_threshold and healthy_threshold must be 1 or more")
	}
	if c.GetInterval() == nil || c.GetTimeout() == nil {
		return p, fmt.Errorf("interval and timeout must be set")
	}
	read := func(name string, from *durationpb.Duration, to *time.Duration, byOthers time.Duration) error {
		if *to = byOthers; from == nil {
			return nil
		}
		if err := from.CheckValid(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if *to = min(from.AsDuration(), longest); *to < 0 {
			return fmt.Errorf("%s: %s is negative", name, *to)
		}
		return nil
	}
	err := errors.Join(
		read("timeout", c.GetTimeout(), &p.Timeout, 0),
		read("initial_jitter", c.GetInitialJitter(), &p.InitialJitter, 0),
		read("interval_jitter", c.GetIntervalJitter(), &p.Jitter, 0),
	)
	p.Timeout = max(p.Timeout, time.Millisecond)
	if traffic {
		return p, errors.Join(err,
			read("interval", c.GetInterval(), &p.HealthyInterval, 0),
			read("unhealthy_interval", c.GetUnhealthyInterval(), &p.Interval, p.HealthyInterval),
			read("unhealthy_edge_interval", c.GetUnhealthyEdgeInterval(), &p.EdgeInterval, p.Interval),
			read("healthy_edge_interval", c.GetHealthyEdgeInterval(), &p.HealthyEdge, p.HealthyInterval))
	}
	err = errors.Join(err, read("no_traffic_interval", c.GetNoTrafficInterval(), &p.Interval, defaultInterval))
	p.EdgeInterval, p.HealthyEdge = p.Interval, p.Interval
	return p, errors.Join(err, read("no_traffic_healthy_interval", c.GetNoTrafficHealthyInterval(), &p.HealthyInterval, p.Interval))
}
