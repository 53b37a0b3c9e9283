package ruling

import (
	"slices"

	"hdsd/coordinator/catalog"
	"hdsd/coordinator/decision"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/store"
)

// publishing says what data planes get of a row or a cluster, given the freeze, shadow
// mode and upstream_health.
type publishing struct {
	freeze  *store.Freeze
	initial health.Status // of an endpoint before its first verdict
	latest  startsInitial // the latest answer of startsInitial
}

// startsInitial is an answer of publishing.startsInitial, and what it depends on:
// callers mostly go on to the next endpoint of the same cluster.
type startsInitial struct {
	cluster *catalog.Cluster
	freeze  *store.Freeze
	answer  bool
}

// setFreeze replaces the freeze; nil ends it.
func (p *publishing) setFreeze(f *store.Freeze) { p.freeze, p.latest = f, startsInitial{} }

// ours is the health that hdsd has decided on, or holds to be true until it has. If
// only the source's word counts, it is what an operator says, or nothing.
func (p *publishing) ours(r *row) health.Status {
	switch {
	case r.override() != nil:
		return r.health()
	case r.judged && r.cluster.UpstreamHealth != configv1.UpstreamHealth_THEIRS:
		return r.health()
	}
	return p.initialOf(r.cluster)
}

// initialOf is the health of an endpoint of a cluster before its first verdict.
func (p *publishing) initialOf(k *catalog.Cluster) health.Status {
	if k.UpstreamHealth == configv1.UpstreamHealth_THEIRS {
		return health.Unknown
	}
	return p.initial
}

// health is hdsd's part in the published health of an endpoint, if it has one.
func (p *publishing) health(r *row) health.Status {
	if decision.PublicationUnder(p.freeze) != decision.Held {
		return p.ours(r)
	}
	if held, ok := p.freeze.Held[r.hash]; ok {
		return held
	}
	return p.initialOf(r.cluster)
}

// decides gives a function that tells whether hdsd has a part in the published health
// of an endpoint of a cluster, which is checked or only has an id.
func (p *publishing) decides(k *catalog.Cluster) func(hash health.Hash, checked bool) bool {
	switch {
	case k.Shadow:
		return func(health.Hash, bool) bool { return false }
	case p.freeze == nil:
		return func(health.Hash, bool) bool { return true }
	}
	initially, held := p.startsInitial(k), p.freeze.Held
	return func(hash health.Hash, checked bool) bool {
		_, found := held[hash]
		return found || initially && checked
	}
}

// decidesAny tells whether hdsd has a part in the published health of any endpoint
// that was there when publishing was frozen.
func (p *publishing) decidesAny(k *catalog.Cluster) bool {
	if k.Shadow || p.freeze == nil {
		return !k.Shadow
	}
	return holdsAny(p.freeze, k)
}

// startsInitial tells whether an endpoint that is new while health is held gets the
// initial health. It does not in a cluster of which nothing is held: that one goes out
// as it came in, since it is new as a whole, or was in shadow mode.
func (p *publishing) startsInitial(k *catalog.Cluster) bool {
	if decision.PublicationUnder(p.freeze) != decision.Held || p.initialOf(k) == health.Unknown {
		return false
	}
	if p.latest.cluster != k || p.latest.freeze != p.freeze {
		p.latest = startsInitial{k, p.freeze, holdsAny(p.freeze, k)}
	}
	return p.latest.answer
}

// holdsAny tells whether a freeze holds the health of any endpoint of a cluster.
func holdsAny(f *store.Freeze, k *catalog.Cluster) bool {
	held := func(hash health.Hash) bool { _, ok := f.Held[hash]; return ok }
	return slices.ContainsFunc(k.Hashes, held) || slices.ContainsFunc(k.Excluded, func(e catalog.Excluded) bool { return held(e.Hash) })
}

// cluster gives the form of a cluster that data planes get, without a message for none.
// If hdsd decides nothing in it, they get it as it came in and check for themselves.
func (p *publishing) cluster(k *catalog.Cluster) eds.Cluster {
	if k.Original == nil || p.decidesAny(k) {
		return eds.Cluster{Message: k.Published, Checked: k.Published != k.Original}
	}
	return eds.Cluster{Message: k.Original}
}

// zoneHealthCounts tells whether data planes get what their zone sees of an endpoint.
// Nothing does under an override, in a freeze, or where only the source's word counts.
func (p *publishing) zoneHealthCounts(r *row) bool {
	return r.cluster != nil && r.override() == nil && p.freeze == nil && r.cluster.UpstreamHealth != configv1.UpstreamHealth_THEIRS
}
