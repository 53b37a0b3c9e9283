package ruling

import (
	"fmt"
	"slices"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
)

// publishing decides the published health of a row or a cluster, given the freeze, shadow mode
// and upstream_health.
type publishing struct {
	freeze  *log.Freeze
	initial health.Status // of an endpoint before its first verdict, unless its cluster differs
	latest  startsInitial // cached

	takeovers *takeovers
}

// startsInitial caches a result of publishing.startsInitial with its inputs, since callers go
// through the endpoints of one cluster.
type startsInitial struct {
	cluster *catalog.Cluster
	freeze  *log.Freeze
	answer  bool
}

// setFreeze sets the freeze, or ends it if nil.
func (p *publishing) setFreeze(f *log.Freeze) { p.freeze, p.latest = f, startsInitial{} }

// voted returns the health by the votes: the verdict, else the initial health. If upstream_health is
// THEIRS, no verdict counts.
func (p *publishing) voted(r *row) health.Status {
	if r.judged && r.cluster.UpstreamHealth != configv1.UpstreamHealth_THEIRS {
		return r.status
	}
	return p.initialOf(r.cluster)
}

// initialOf returns the health of a cluster's endpoints before their first verdict.
func (p *publishing) initialOf(k *catalog.Cluster) health.Status {
	switch {
	case k.UpstreamHealth == configv1.UpstreamHealth_THEIRS:
		return health.Unknown
	case k.IgnoresNew() && (!k.HasOwnChecks() || p.takeovers.isDone(k)): // otherwise data planes wait for their own checks
		return health.Unhealthy
	}
	return p.initial
}

// initialReason describes the origin of the health before the first verdict.
func initialReason(k *catalog.Cluster, status health.Status) string {
	switch {
	case k.Source.IgnoreNew:
		return "addresses that DNS gave before are healthy"
	case k.IgnoresNew():
		return "the cluster has ignore_new_hosts_until_first_hc"
	}
	return fmt.Sprintf("initial_health is %s", status)
}

// health returns hdsd's part in the published health of an endpoint that it decides: the
// override, else the health held by the freeze, else the health by the votes.
func (p *publishing) health(r *row) health.Status {
	if o := r.override(); o != nil {
		return o.Status
	}
	if p.freeze.Publication() != log.Held {
		return p.voted(r)
	}
	if held, ok := p.freeze.Held[r.hash]; ok {
		return held
	}
	return p.initialOf(r.cluster)
}

// decides returns a function that reports whether hdsd has a part in the published health of an
// endpoint of the cluster.
func (p *publishing) decides(k *catalog.Cluster) func(*row) bool {
	switch {
	case k.Shadow:
		return func(*row) bool { return false }
	case p.freeze == nil:
		return func(*row) bool { return true }
	}
	initially, held := p.startsInitial(k), p.freeze.Held
	return func(r *row) bool {
		_, found := held[r.hash]
		return found || initially && r.checked() || r.override() != nil
	}
}

// decidesVerdicts reports whether hdsd has a part in the published health of any endpoint of a
// cluster, apart from overrides in a freeze.
func (p *publishing) decidesVerdicts(k *catalog.Cluster) bool {
	if k.Shadow || p.freeze == nil {
		return !k.Shadow
	}
	return holdsAny(p.freeze, k)
}

// startsInitial reports whether an endpoint gets the initial health if it is new while health
// is held. If nothing of its cluster is held, it passes through: such a cluster is new, or was
// in shadow mode.
func (p *publishing) startsInitial(k *catalog.Cluster) bool {
	if p.freeze.Publication() != log.Held || p.initialOf(k) == health.Unknown {
		return false
	}
	if p.latest.cluster != k || p.latest.freeze != p.freeze {
		p.latest = startsInitial{k, p.freeze, holdsAny(p.freeze, k)}
	}
	return p.latest.answer
}

// holdsAny reports whether a freeze holds the health of any endpoint of a cluster.
func holdsAny(f *log.Freeze, k *catalog.Cluster) bool {
	held := func(hash health.Hash) bool { _, ok := f.Held[hash]; return ok }
	return slices.ContainsFunc(k.Hashes, held) || slices.ContainsFunc(k.Excluded, func(e catalog.Excluded) bool { return held(e.Hash) })
}

// zoneHealthCounts reports whether data planes get the health of an endpoint in their zone.
// They do not under an override, in a freeze, or if upstream_health is THEIRS.
func (p *publishing) zoneHealthCounts(r *row) bool {
	return r.cluster != nil && r.override() == nil && p.freeze == nil && r.cluster.UpstreamHealth != configv1.UpstreamHealth_THEIRS
}
