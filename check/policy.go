package check

import (
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// defaultInterval is Envoy's for clusters without traffic.
const defaultInterval = time.Minute

// Policy says when to probe and how many outcomes change the health.
type Policy struct {
	Timeout            time.Duration
	Interval           time.Duration // after a probe that did not pass or with a change pending
	HealthyInterval    time.Duration // after any other
	InitialJitter      time.Duration
	Jitter             time.Duration
	JitterPercent      uint32
	UnhealthyThreshold uint32
	HealthyThreshold   uint32
}

// Random gives a number in [0, n), n > 0.
type Random func(n int64) int64

// First is the delay before the first probe.
func (p *Policy) First(random Random) time.Duration {
	if p.InitialJitter <= 0 {
		return 0
	}
	return time.Duration(random(int64(p.InitialJitter)))
}

// Next is the delay from the end of a probe to the next.
func (p *Policy) Next(o Outcome, pending bool, random Random) time.Duration {
	base := p.Interval
	if (o == Passed || o == Degraded) && !pending {
		base = p.HealthyInterval
	}
	delay := base
	// Computed on the float, as the product may be too large.
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

// longest keeps sums with the time of day in range.
const longest = 10 * 365 * 24 * time.Hour

func newPolicy(c *corev3.HealthCheck) (Policy, error) {
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
	for _, d := range []struct {
		name     string
		from     *durationpb.Duration
		to       *time.Duration
		byOthers time.Duration
	}{
		{"timeout", c.GetTimeout(), &p.Timeout, 0},
		{"no_traffic_interval", c.GetNoTrafficInterval(), &p.Interval, defaultInterval},
		{"no_traffic_healthy_interval", c.GetNoTrafficHealthyInterval(), &p.HealthyInterval, -1},
		{"initial_jitter", c.GetInitialJitter(), &p.InitialJitter, 0},
		{"interval_jitter", c.GetIntervalJitter(), &p.Jitter, 0},
	} {
		*d.to = d.byOthers
		if d.from == nil {
			continue
		}
		if err := d.from.CheckValid(); err != nil {
			return p, fmt.Errorf("%s: %w", d.name, err)
		}
		if *d.to = min(d.from.AsDuration(), longest); *d.to < 0 {
			return p, fmt.Errorf("%s: %s is negative", d.name, *d.to)
		}
	}
	if p.HealthyInterval < 0 {
		p.HealthyInterval = p.Interval
	}
	p.Timeout = max(p.Timeout, time.Millisecond)
	return p, nil
}
