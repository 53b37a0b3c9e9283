package ruling

import (
	"fmt"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
)

// Published is the published health of an endpoint.
type Published struct {
	Status health.Status

	publishing *publishing
	cluster    *catalog.Cluster
	endpoint   *catalog.Endpoint
	ours       health.Status
	decider    *catalog.Cluster
}

// Reason says why the published health differs from the verdict.
func (p *Published) Reason() string {
	return p.publishing.withheld(p.cluster) + p.publishing.origin(p.cluster, p.endpoint, p.Status, p.ours, p.decider)
}

// Published returns the published health of an endpoint, and whether data planes get the endpoint.
func (t *Table) Published(k *catalog.Cluster, e *catalog.Endpoint) (p Published, ok bool) {
	if !e.InAssignment {
		return Published{}, false
	}
	ours, decider := t.worst(k, e)
	source := e.SourceHealth
	if decider != nil && k.UpstreamHealth == configv1.UpstreamHealth_OURS {
		source = health.Unknown
	}
	return Published{publish.Combine(ours, source), &t.publishing, k, e, ours, decider}, true
}

// Sharing returns the clusters that share the assignment of a cluster, itself included. The caller
// must not modify the result.
func (t *Table) Sharing(k *catalog.Cluster) []*catalog.Cluster {
	return t.clusters.byService[k.Source.ServiceName]
}

// worst returns the worst health for an endpoint among the clusters that share an assignment,
// with its cluster, or nil if none decides.
func (t *Table) worst(k *catalog.Cluster, e *catalog.Endpoint) (worst health.Status, decider *catalog.Cluster) {
	for _, other := range t.clusters.byService[k.Source.ServiceName] {
		id, ok := t.IDOf(e)
		if other != k {
			key := e.Key()
			key.Cluster = other.Source.Name
			id, ok = t.Find(key.Hash())
		}
		if !ok || other.Assignment == nil || !t.publishing.decides(other)(&t.rows.byID[id]) {
			continue
		}
		status := t.publishing.health(&t.rows.byID[id])
		if decider == nil || health.Worse(worst, status) != worst {
			worst, decider = status, other
		}
	}
	return worst, decider
}

// withheld returns the reason why verdicts on a cluster are not published; empty if they are.
func (p *publishing) withheld(k *catalog.Cluster) string {
	switch {
	case k.Shadow:
		return "shadow: "
	case p.freeze != nil:
		return fmt.Sprintf("frozen by %s: %s; ", p.freeze.Author, p.freeze.Reason)
	}
	return ""
}

// origin describes the origin of the published health.
func (p *publishing) origin(k *catalog.Cluster, e *catalog.Endpoint, status, ours health.Status, decider *catalog.Cluster) string {
	switch {
	case decider != nil && k.UpstreamHealth == configv1.UpstreamHealth_THEIRS && ours == health.Unknown:
		return fmt.Sprintf("the source says %s, and by upstream_health only its word counts", e.SourceHealth)
	case decider == nil || status != ours:
		return fmt.Sprintf("the source says %s", e.SourceHealth)
	case decider != k:
		return fmt.Sprintf("cluster %s, which has the same service name, has it %s", decider.Title(), status)
	case p.freeze.Publication() != log.Held:
		return "there is no verdict yet, and " + initialReason(k, status)
	}
	if _, held := p.freeze.Held[e.Hash()]; held {
		return fmt.Sprintf("it was %s when that began", status)
	}
	return "it is new since then, and " + initialReason(k, status)
}
