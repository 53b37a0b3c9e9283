package aggregate

import (
	"time"

	"hdsd/health"
)

// Options are the parameters of an Aggregator. A zero field means its default.
type Options struct {
	// Staleness is how long a checker may be silent before its votes no
	// longer count. Default: DefaultStaleness of reports each second.
	Staleness time.Duration

	// AwaitFor is how long a voter without a vote is awaited: a checker after a
	// start, after it connected, or after it fell silent. Meanwhile nothing
	// changes that its vote could prevent. It should cover a reconnection and
	// two reports. Default: 5 s.
	AwaitFor time.Duration

	// Doubt says when a checker or a path is doubted.
	Doubt Doubt

	// ZoneViews asks for Effects.ZoneViews.
	ZoneViews bool
}

// DefaultStaleness is the staleness that goes with reports every interval: two
// intervals and a half, so that one late report is not taken for silence, and at
// least two seconds, so that a pause of either process is not either.
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

// BeliefLimits say for how long votes count, and when a checker is doubted. A
// zero field is as in Options. Endpoints with the same limits are a class of
// their own: a checker may be doubted in one class and believed in another.
type BeliefLimits struct {
	Staleness time.Duration
	Doubt     Doubt
}

// Doubt says when a checker, or a path from the checkers of one zone to the
// endpoints of another, is no longer believed when it says down. Ups are always
// believed, since a checker that is cut off cannot make one up. A zero field
// means its default.
type Doubt struct {
	// Disagreements is how many endpoints a checker must say down of that most
	// of its peers see up, and Share what part of its endpoints these must be.
	// Defaults: 8 and 0.2.
	Disagreements int
	Share         float64

	// PathDisagreements and PathShare are the same for a path. Where the
	// endpoint's own zone has a checker, the up of that one is enough.
	// Defaults: 20 and 0.5.
	PathDisagreements int
	PathShare         float64

	// PathNoise is the part of the votes on a zone from elsewhere that may be
	// contradicted while the way there still looks intact. Default: 0.002.
	PathNoise float64

	// Doubt ends when the contradicted share is below Release for ReleaseAfter.
	// Defaults: 0.05 and 3 s.
	Release      float64
	ReleaseAfter time.Duration
}

// WithDefaults returns the limits with defaults in place of zeros.
func (d Doubt) WithDefaults() Doubt {
	return d.or(&Doubt{
		Disagreements: 8, Share: 0.2, PathDisagreements: 20, PathShare: 0.5, PathNoise: 0.002,
		Release: 0.05, ReleaseAfter: 3 * time.Second,
	})
}

// or returns the limits with others in place of zeros.
func (d Doubt) or(others *Doubt) Doubt {
	or(&d.Disagreements, others.Disagreements)
	or(&d.Share, others.Share)
	or(&d.PathDisagreements, others.PathDisagreements)
	or(&d.PathShare, others.PathShare)
	or(&d.PathNoise, others.PathNoise)
	or(&d.Release, others.Release)
	or(&d.ReleaseAfter, others.ReleaseAfter)
	return d
}

func or[T int | float64 | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// Timing says how an endpoint is checked, as far as a verdict depends on it.
type Timing struct {
	Interval, Timeout, InitialJitter time.Duration
	UnhealthyThreshold               uint32
	ReportInterval                   time.Duration
}

// Endpoint is an endpoint to judge.
type Endpoint struct {
	ID      health.EndpointID // dense: memory goes with the highest
	Timing  Timing
	Rule    Rule
	Zone    health.Locality // where it is; of no zone if region and zone are empty
	Cluster string
}
