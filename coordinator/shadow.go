package coordinator

import (
	"slices"

	"hdsd/api"
	"hdsd/coordinator/catalog"
	"hdsd/eds"
	"hdsd/health"
	"hdsd/store"
)

// deciding gives what tells whether what hdsd says of an endpoint of a cluster is
// published: of what is checked, or of anything else that has an id.
func (c *core) deciding(k *catalog.Cluster) func(hash health.Hash, checked bool) bool {
	frozen := c.frozen.Load()
	switch {
	case k.Shadow:
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
	cluster *catalog.Cluster
	frozen  *store.Freeze
	begins  bool
}

// beginsHeld tells whether what is new in a cluster while health is held has the
// initial health, as there is one to speak of. A cluster of which nothing is held
// goes out as it came in: it is all new, or was in the shadow.
func (c *core) beginsHeld(k *catalog.Cluster, frozen *store.Freeze) bool {
	if publishing(frozen) != heldTold || c.initialOf(k) == health.Unknown {
		return false
	}
	if b := &c.beginning; b.cluster != k || b.frozen != frozen {
		*b = beginning{k, frozen, anyHeld(k, frozen)}
	}
	return c.beginning.begins
}

// anyHeld tells whether health of an endpoint of a cluster is held.
func anyHeld(k *catalog.Cluster, frozen *store.Freeze) bool {
	held := func(hash health.Hash) bool { _, ok := frozen.Held[hash]; return ok }
	return slices.ContainsFunc(k.Hashes, held) || slices.ContainsFunc(k.Excluded, func(a catalog.Excluded) bool { return held(a.Hash) })
}

// outward gives the form of a cluster that data planes get, without a message for
// none. Where hdsd decides nothing in it, they get it as it came in and check for
// themselves.
func (c *core) outward(k *catalog.Cluster) eds.Cluster {
	if k.Original == nil || c.decidesAny(k) {
		return eds.Cluster{Message: k.Published, Checked: k.Published != k.Original}
	}
	return eds.Cluster{Message: k.Original}
}

func (c *core) decidesAny(k *catalog.Cluster) bool {
	frozen := c.frozen.Load()
	if k.Shadow || frozen == nil {
		return !k.Shadow
	}
	return anyHeld(k, frozen)
}

// mode is what becomes of the verdicts on a cluster.
func (c *core) mode(k *catalog.Cluster) api.Mode {
	switch {
	case k.Shadow:
		return api.Shadow
	case c.frozen.Load() != nil:
		return api.Frozen
	}
	return api.Publish
}
