package catalog

import (
	"iter"
	"math"
	"net/netip"

	"hdsd/hds/specifier"
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
func ChangedTargets(before, after *Cluster) iter.Seq2[Target, Target] {
	var old, next []Endpoint
	var oldRate, nextRate int64
	if before != nil {
		old, oldRate = before.Endpoints, before.probeRate()
	}
	if after != nil {
		next, nextRate = after.Endpoints, after.probeRate()
	}
	return func(yield func(Target, Target) bool) {
		for len(old)+len(next) > 0 {
			var removed, added Target
			order := -1
			if len(next) > 0 {
				order = 1
			}
			if len(old) > 0 && len(next) > 0 {
				order = old[0].compare(&next[0])
			}
			same := order == 0 && oldRate == nextRate && old[0].sameTarget(&next[0])
			if order <= 0 {
				if !same {
					removed = old[0].target(oldRate)
				}
				old = old[1:]
			}
			if order >= 0 {
				if !same {
					added = next[0].target(nextRate)
				}
				next = next[1:]
			}
			if (removed.Address.IsValid() || added.Address.IsValid()) && !yield(removed, added) {
				return
			}
		}
	}
}

// target returns the target of an endpoint, given the rate.
func (e *Endpoint) target(rate int64) Target {
	if e.at < 0 {
		return Target{}
	}
	return Target{Hash: e.Hash(), Address: e.of.Checked.Target(int(e.at)), Rate: rate}
}

// sameTarget reports whether the probes of two endpoints with the same key go to the same address. Two
// endpoints without probes do, too.
func (e *Endpoint) sameTarget(f *Endpoint) bool {
	return e.at < 0 && f.at < 0 || e.at >= 0 && f.at >= 0 && specifier.SameTarget(e.of.Checked, int(e.at), f.of.Checked, int(f.at))
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
