package aggregate

import (
	"time"

	"hdsd/health"
)

// Options are the parameters of an Aggregator. A zero field stands for its default.
type Options struct {
	// Staleness is the time for which a silent checker's votes still count. Default:
	// DefaultStaleness of reports each second.
	Staleness time.Duration

	// AwaitFor is the time to wait for a voter without a vote: after a start, after it
	// connected, or after it fell silent. A change that its vote could prevent waits meanwhile.
	// AwaitFor should cover a reconnection and two reports. Default: 5 s.
	AwaitFor time.Duration

	// Doubt says when a checker or a path is doubted.
	Doubt Doubt

	// ZoneViews enables Effects.ZoneViews.
	ZoneViews bool
}

// DefaultStaleness returns two and a half report intervals, and at least two seconds.
// So neither one late report nor a short pause of a process counts as silence.
func DefaultStaleness(interval time.Duration) time.Duration {
	return max(interval*5/2, 2*time.Second)
}

func (o Options) withDefaults() Options {
	if o.Staleness <= 0 {
		o.Staleness = DefaultStaleness(time.Second)
	}
	if o.AwaitFor <= 0 {
		o.AwaitFor = 5 * time.Second
	}
	o.Doubt = o.Doubt.WithDefaults()
	return o
}

// BeliefLimits determine how long votes count, and when a checker is doubted. A zero field
// stands for the value in Options. Endpoints with the same limits form a class: a checker may
// be doubted in one class and believed in another.
type BeliefLimits struct {
	Staleness time.Duration
	Doubt     Doubt
}

// Doubt determines when hdsd stops believing the downs of a checker, or of a path from the
// checkers of one zone to the endpoints of another. It always believes ups, since a checker
// that is cut off cannot report one. A zero field stands for its default.
type Doubt struct {
	// A checker is doubted if it says down of Disagreements endpoints that most of its peers
	// see up, and these are at least Share of its endpoints. Defaults: 8 and 0.2.
	Disagreements int
	Share         float64

	// PathDisagreements and PathShare are the same limits for a path. If the
	// endpoint's own zone has a checker, its up alone contradicts a down. Defaults:
	// 20 and 0.5.
	PathDisagreements int
	PathShare         float64

	// PathNoise is the share of contradicted votes from elsewhere on a zone up to which the
	// path there counts as intact. Default: 0.002.
	PathNoise float64

	// Doubt ends when the contradicted share is below Release for ReleaseAfter.
	// Defaults: 0.05 and 3 s.
	Release      float64
	ReleaseAfter time.Duration
}

// WithDefaults returns the limits with defaults instead of zeros.
func (d Doubt) WithDefaults() Doubt {
	return d.or(&Doubt{
		Disagreements: 8, Share: 0.2, PathDisagreements: 20, PathShare: 0.5, PathNoise: 0.002,
		Release: 0.05, ReleaseAfter: 3 * time.Second,
	})
}

// or returns the limits with the given defaults instead of zeros.
func (d Doubt) or(defaults *Doubt) Doubt {
	or(&d.Disagreements, defaults.Disagreements)
	or(&d.Share, defaults.Share)
	or(&d.PathDisagreements, defaults.PathDisagreements)
	or(&d.PathShare, defaults.PathShare)
	or(&d.PathNoise, defaults.PathNoise)
	or(&d.Release, defaults.Release)
	or(&d.ReleaseAfter, defaults.ReleaseAfter)
	return d
}

func or[T int | float64 | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// Timing is the timing of an endpoint's checks, as far as its verdict depends on it.
type Timing struct {
	Interval, Timeout, InitialJitter time.Duration
	UnhealthyThreshold               uint32
	ReportInterval                   time.Duration
	HealthyThreshold                 uint32
}

// Endpoint describes an endpoint to judge.
type Endpoint struct {
	ID      health.EndpointID // dense: memory grows with the largest id
	Timing  Timing
	Rule    Rule
	Zone    health.Locality // its own zone; none if region and zone are empty
	Cluster string
}
