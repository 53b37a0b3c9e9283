package coordinator

import (
	"fmt"
	"maps"
	"slices"

	"hdsd/api"
	"hdsd/eds"
	"hdsd/health"
)

// verdict is the health that hdsd decided on, or holds to be true until it has.
func (c *core) verdict(r *row) health.Status {
	if r.judged || r.overridden() != nil {
		return r.health()
	}
	return c.rules.initial
}

// told is hdsd's part in what subscribers are told of an endpoint, as far as
// hdsd decides.
func (c *core) told(r *row) health.Status {
	if frozen := c.frozen.Load(); publishing(frozen) == heldTold {
		return frozen.Held[r.hash]
	}
	return c.verdict(r)
}

// publishedOf gives what subscribers are told of an endpoint, nil where that is
// its verdict or nothing.
func (c *core) publishedOf(k *cluster, e *entry, verdict health.Status) *api.Published {
	if !e.sent {
		return nil
	}
	ours, decider := c.decided(k, e)
	status := eds.Combine(ours, e.says)
	if status == verdict {
		return nil
	}
	return &api.Published{Status: status, Reason: c.withheld(k) + c.origin(k, e, status, ours, decider)}
}

// decided is the worst that the clusters that share a service name have to say
// of an endpoint, and which of them says it.
func (c *core) decided(k *cluster, e *entry) (worst health.Status, decider *cluster) {
	sharing := c.services[k.source.ServiceName]
	for _, name := range slices.Sorted(maps.Keys(sharing)) {
		key := e.key
		key.Cluster = name
		id, ok := c.table.ids[key.Hash()]
		if !ok || sharing[name].message == nil || !c.decides(sharing[name], c.table.rows[id].hash) {
			continue
		}
		said := c.told(&c.table.rows[id])
		if decider == nil || health.Worse(worst, said) != worst {
			worst, decider = said, sharing[name]
		}
	}
	return worst, decider
}

// withheld says why the verdicts on a cluster are kept from the subscribers,
// if they are.
func (c *core) withheld(k *cluster) string {
	frozen := c.frozen.Load()
	switch {
	case k.shadow:
		return "shadow: "
	case frozen != nil:
		return fmt.Sprintf("frozen by %s: %s; ", frozen.Author, frozen.Reason)
	}
	return ""
}

// origin says where the health comes from that subscribers are told.
func (c *core) origin(k *cluster, e *entry, status, ours health.Status, decider *cluster) string {
	switch {
	case decider == nil || status != ours:
		return fmt.Sprintf("the source says %s", e.says)
	case decider != k:
		return fmt.Sprintf("cluster %s, which has the same service name, has it %s", decider.source.Name, status)
	case publishing(c.frozen.Load()) == heldTold:
		return fmt.Sprintf("it was %s when that began", status)
	}
	return fmt.Sprintf("there is no verdict yet, and initial_health is %s", status)
}
