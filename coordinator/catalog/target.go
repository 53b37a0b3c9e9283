package catalog

import (
	"iter"
	"math"
	"net/netip"

	"hdsd/hds/specifier"
	"hdsd/health"
)

// Target is where the probes of a checked endpoint go.
type Target struct {
	Hash    health.Hash // of the endpoint
	Address netip.Addr  // invalid: there is no such endpoint, or its probes go to no IP address
	Rate    int64       // probes in 1,000 seconds, of all checkers that are to check it
}

// ChangedTargets goes through the endpoints whose target differs between two versions of a cluster,
// either of which may be nil.
func ChangedTargets(before, after *Cluster) iter.Seq2[Target, Target] {
	var old, next []Endpoint
	var oldRate, nextRate int64
	if before != nil {
		old, oldRate = before.Endpoints, before.allProbes()
	}
	if after != nil {
		next, nextRate = after.Endpoints, after.allProbes()
	}
	return func(yield func(Target, Target) bool) {
		for len(old)+len(next) > 0 {
			var gone, came Target
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
					gone = old[0].target(oldRate)
				}
				old = old[1:]
			}
			if order >= 0 {
				if !same {
					came = next[0].target(nextRate)
				}
				next = next[1:]
			}
			if (gone.Address.IsValid() || came.Address.IsValid()) && !yield(gone, came) {
				return
			}
		}
	}
}

// target returns where the probes of an endpoint go, given their rate.
func (e *Endpoint) target(rate int64) Target {
	if e.at < 0 {
		return Target{}
	}
	return Target{Hash: e.Hash(), Address: e.of.Checked.Target(int(e.at)), Rate: rate}
}

// sameTarget reports whether the probes of two endpoints with one key go to one address, or neither
// has any.
func (e *Endpoint) sameTarget(f *Endpoint) bool {
	return e.at < 0 && f.at < 0 || e.at >= 0 && f.at >= 0 && specifier.SameTarget(e.of.Checked, int(e.at), f.of.Checked, int(f.at))
}

// allProbes gives the probes of one endpoint in 1,000 seconds: those of all checkers that are to
// check it, by the shortest intervals that they go by.
func (c *Cluster) allProbes() int64 {
	if c.Checked == nil {
		return 0
	}
	sum := 0.0
	for _, check := range c.Checked.Checks() {
		sum += 1000 / specifier.ShortestInterval(check).Seconds()
	}
	return int64(math.Ceil(sum)) * int64(max(c.Redundancy, 1))
}
