package coordinator

import (
	"slices"

	"hdsd/api"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
)

// shadows tells whether the verdicts on a cluster are kept from the
// subscribers by the configuration.
func (r *rules) shadows(name string) bool {
	if mode := r.policyOf(name).mode; mode != nil {
		return *mode == configv1.Mode_SHADOW
	}
	return r.shadow
}

// decides tells whether what hdsd says of an endpoint of a cluster is
// published. The hash of one that is not checked decides nothing.
func (c *core) decides(k *cluster, hash health.Hash) bool {
	frozen := c.frozen.Load()
	switch {
	case k.shadow:
		return false
	case frozen == nil:
		return true
	}
	_, held := frozen.Held[hash]
	return held
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
	if c.frozen.Load() == nil {
		return !k.shadow
	}
	return slices.ContainsFunc(k.hashes, func(hash health.Hash) bool { return c.decides(k, hash) }) ||
		slices.ContainsFunc(k.aside, func(a setAside) bool { return c.decides(k, a.hash) })
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
