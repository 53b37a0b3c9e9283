package coordinator

import (
	"slices"

	"hdsd/api"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/store"
)

// shadows tells whether the verdicts on a cluster are kept from the
// subscribers by the configuration.
func (r *rules) shadows(name string) bool {
	if mode := r.policyOf(name).mode; mode != nil {
		return *mode == configv1.Mode_SHADOW
	}
	return r.shadow
}

// deciding gives what tells whether what hdsd says of an endpoint of a cluster is
// published: of what is checked, or of anything else that has an id.
func (c *core) deciding(k *cluster) func(hash health.Hash, checked bool) bool {
	frozen := c.frozen.Load()
	switch {
	case k.shadow:
		return func(health.Hash, bool) bool { return false }
	case frozen == nil:
		return func(health.Hash, bool) bool { return true }
	}
	begins := c.beginsHeld(k, frozen)
	return func(hash health.Hash, checked bool) bool {
		_, held := frozen.Held[hash]
		return held || begins && checked
	}
}

// beginning is the latest answer of beginsHeld, and what it depends on: whoever
// asks goes on to the next endpoint of the cluster.
type beginning struct {
	cluster *cluster
	frozen  *store.Freeze
	begins  bool
}

// beginsHeld tells whether what is new in a cluster while health is held has the
// initial health, as there is one to speak of. A cluster of which nothing is held
// goes out as it came in: it is all new, or was in the shadow.
func (c *core) beginsHeld(k *cluster, frozen *store.Freeze) bool {
	if publishing(frozen) != heldTold || c.initialOf(k) == health.Unknown {
		return false
	}
	if b := &c.beginning; b.cluster != k || b.frozen != frozen {
		*b = beginning{k, frozen, k.anyHeld(frozen)}
	}
	return c.beginning.begins
}

// anyHeld tells whether health of an endpoint of a cluster is held.
func (c *cluster) anyHeld(frozen *store.Freeze) bool {
	held := func(hash health.Hash) bool { _, ok := frozen.Held[hash]; return ok }
	return slices.ContainsFunc(c.hashes, held) || slices.ContainsFunc(c.aside, func(a setAside) bool { return held(a.hash) })
}

// outward gives the form of a cluster that data planes get, without a message for
// none. Where hdsd decides nothing in it, they get it as it came in and check for
// themselves.
func (c *core) outward(k *cluster) eds.Cluster {
	if k.given == nil || c.decidesAny(k) {
		return eds.Cluster{Message: k.published, Checked: k.published != k.given}
	}
	return eds.Cluster{Message: k.given}
}

func (c *core) decidesAny(k *cluster) bool {
	frozen := c.frozen.Load()
	if k.shadow || frozen == nil {
		return !k.shadow
	}
	return k.anyHeld(frozen)
}

// mode is what becomes of the verdicts on a cluster.
func (c *core) mode(k *cluster) api.Mode {
	switch {
	case k.shadow:
		return api.Shadow
	case c.frozen.Load() != nil:
		return api.Frozen
	}
	return api.Publish
}
