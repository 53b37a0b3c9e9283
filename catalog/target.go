package catalog

import (
	"iter"
	"math"
	"net/netip"

	"hdsd/envoy/specifier"
	"hdsd/health"
)

// Target is the destination of the probes of a checked endpoint.
type Target struct {
	Hash    health.Hash // of the endpoint
	Address netip.Addr  // invalid: there is no such endpoint, or its probes go to no IP address
	Rate    int64       // probes in 1,000 seconds, of all its checkers
}

// ChangedTargets returns the old and the new target of each endpoint whose target differs between two
// versions of a cluster. Either version may be nil.
func ChangedTargets(previous, next *Cluster) iter.Seq2[Target, Target] {
	var previousRest, nextRest []Endpoint
	var oldRate, nextRate int64
	if previous != nil {
		previousRest, oldRate = previous.Endpoints, previous.probeRate()
	}
	if next != nil {
		nextRest, nextRate = next.Endpoints, next.probeRate()
	}
	return func(yield func(Target, Target) bool) {
		for len(previousRest)+len(nextRest) > 0 {
			var removed, added Target
			order := -1
			if len(nextRest) > 0 {
				order = 1
			}
			if len(previousRest) > 0 && len(nextRest) > 0 {
				order = previousRest[0].compare(&nextRest[0])
			}
			unchanged := order == 0 && oldRate == nextRate && previousRest[0].sameTarget(&nextRest[0])
			if order <= 0 {
				if !unchanged {
					removed = previousRest[0].target(oldRate)
				}
				previousRest = previousRest[1:]
			}
			if order >= 0 {
				if !unchanged {
					added = nextRest[0].target(nextRate)
				}
				nextRest = nextRest[1:]
			}
			if (removed.Address.IsValid() || added.Address.IsValid()) && !yield(removed, added) {
				return
			}
		}
	}
}

// target returns the target of an endpoint, given the rate.
func (e *Endpoint) target(rate int64) Target {
	if e.index < 0 {
		return Target{}
	}
	return Target{Hash: e.Hash(), Address: e.cluster.Checked.Target(int(e.index)), Rate: rate}
}

// sameTarget reports whether the probes of two endpoints with the same key go to the same address. Two
// endpoints without probes do, too.
func (e *Endpoint) sameTarget(f *Endpoint) bool {
	return e.index < 0 && f.index < 0 || e.index >= 0 && f.index >= 0 && specifier.SameTarget(e.cluster.Checked, int(e.index), f.cluster.Checked, int(f.index))
}

// probeRate returns the probes of one endpoint in 1,000 seconds: of all its checkers, by the shortest
// interval of each check.
func (c *Cluster) probeRate() int64 {
	if c.Checked == nil {
		return 0
	}
	sum := 0.0
	for _, check := range c.Checked.Checks() {
		sum += 1000 / specifier.ShortestInterval(check).Seconds()
	}
	return int64(math.Ceil(sum)) * int64(max(c.Redundancy, 1))
}
