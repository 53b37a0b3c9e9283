package coordinator

import (
	"fmt"
	"maps"
	"slices"

	"hdsd/api"
	"hdsd/coordinator/catalog"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
)

// ours is the health that hdsd decided on, or holds to be true until it has.
// Where only the source's word counts, it is nothing but what an operator says.
func (c *core) ours(r *row) health.Status {
	switch {
	case r.overridden() != nil:
		return r.health()
	case r.judged && r.cluster.UpstreamHealth != configv1.UpstreamHealth_THEIRS:
		return r.health()
	}
	return c.initialOf(r.cluster)
}

// initialOf is what hdsd says of an endpoint of a cluster before there is a
// verdict on it.
func (c *core) initialOf(k *catalog.Cluster) health.Status {
	if k.UpstreamHealth == configv1.UpstreamHealth_THEIRS {
		return health.Unknown
	}
	return c.rules.InitialHealth
}

// told is hdsd's part in what subscribers are told of an endpoint, as far as
// hdsd decides.
func (c *core) told(r *row) health.Status {
	frozen := c.frozen.Load()
	if publishing(frozen) != heldTold {
		return c.ours(r)
	}
	if held, ok := frozen.Held[r.hash]; ok {
		return held
	}
	return c.initialOf(r.cluster)
}

// reweigh tells subscribers of a cluster whose source's word counts for more or
// less than before. In between, the worse of both is told.
func (c *core) reweigh(before, after *catalog.Cluster, e *edit) {
	if before == nil || before.UpstreamHealth == after.UpstreamHealth {
		return
	}
	healths := &e.health
	if after.UpstreamHealth == configv1.UpstreamHealth_THEIRS {
		healths = &e.withdrawn
	}
	for i := range after.Endpoints {
		if id, ok := c.idOf(&after.Endpoints[i]); ok {
			*healths = append(*healths, eds.Health{ID: id, Status: c.told(&c.table.rows[id])})
			e.reweighed = append(e.reweighed, id)
		}
	}
}

// publishedOf gives what subscribers are told of an endpoint, nil where that is
// its verdict or nothing.
func (c *core) publishedOf(k *catalog.Cluster, e *catalog.Endpoint, verdict health.Status) *api.Published {
	if !e.InAssignment {
		return nil
	}
	ours, decider := c.decided(k, e)
	says := e.SourceHealth
	if decider != nil && k.UpstreamHealth == configv1.UpstreamHealth_OURS {
		says = health.Unknown
	}
	status := eds.Combine(ours, says)
	if status == verdict {
		return nil
	}
	return &api.Published{Status: status, Reason: c.withheld(k) + c.origin(k, e, status, ours, decider)}
}

// decided is the worst that the clusters that share a service name have to say
// of an endpoint, and which of them says it.
func (c *core) decided(k *catalog.Cluster, e *catalog.Endpoint) (worst health.Status, decider *catalog.Cluster) {
	sharing := c.services[k.Source.ServiceName]
	for _, name := range slices.Sorted(maps.Keys(sharing)) {
		hash := e.Hash
		if name != e.Key.Cluster {
			key := e.Key
			key.Cluster = name
			hash = key.Hash()
		}
		id, ok := c.table.ids[hash]
		if !ok || sharing[name].Assignment == nil || !c.deciding(sharing[name])(hash, c.table.rows[id].index != none) {
			continue
		}
		said := c.told(&c.table.rows[id])
		if decider == nil || health.Worse(worst, said) != worst {
			worst, decider = said, sharing[name]
		}
	}
	return worst, decider
}

// isHeld tells whether a freeze holds the health of an endpoint.
func (c *core) isHeld(e *catalog.Endpoint) bool {
	_, held := c.frozen.Load().Held[e.Hash]
	return held
}

// withheld says why the verdicts on a cluster are kept from the subscribers,
// if they are.
func (c *core) withheld(k *catalog.Cluster) string {
	frozen := c.frozen.Load()
	switch {
	case k.Shadow:
		return "shadow: "
	case frozen != nil:
		return fmt.Sprintf("frozen by %s: %s; ", frozen.Author, frozen.Reason)
	}
	return ""
}

// origin says where the health comes from that subscribers are told.
func (c *core) origin(k *catalog.Cluster, e *catalog.Endpoint, status, ours health.Status, decider *catalog.Cluster) string {
	switch {
	case decider != nil && k.UpstreamHealth == configv1.UpstreamHealth_THEIRS && ours == health.Unknown:
		return fmt.Sprintf("the source says %s, and by upstream_health only its word counts", e.SourceHealth)
	case decider == nil || status != ours:
		return fmt.Sprintf("the source says %s", e.SourceHealth)
	case decider != k:
		return fmt.Sprintf("cluster %s, which has the same service name, has it %s", decider.Source.Name, status)
	case publishing(c.frozen.Load()) != heldTold:
	case c.isHeld(e):
		return fmt.Sprintf("it was %s when that began", status)
	default:
		return fmt.Sprintf("it is new since then, and initial_health is %s", status)
	}
	return fmt.Sprintf("there is no verdict yet, and initial_health is %s", status)
}
