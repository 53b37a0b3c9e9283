package ruling

import (
	"fmt"
	"slices"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
)

// Preview is the effect of an override that nobody has set yet.
type Preview struct {
	Override           // Endpoints counts the endpoints it would decide
	Replaced *Override // nil: none
	Panics   []string  // a text for each cluster with Envoys in panic; none for HEALTHY
}

// PreviewOverride returns the effect of a SetOverride, and changes nothing. The error is a
// *Refusal.
func (t *Table) PreviewOverride(requested log.Override) (p Preview, err error) {
	if err := t.Overridable(&requested.Scope); err != nil {
		return p, err
	}
	p.Override.Override, p.Replaced = requested, t.overrides.byScope[requested.Scope]
	for k := range t.clusters.within(&requested.Scope) {
		decided := 0
		published := func(e *catalog.Endpoint) health.Status {
			switch {
			case !canOverride(k, e) || !t.overrides.wouldDecide(k, &requested.Scope, e.Key()):
				p, _ := t.Published(k, e)
				return p.Status
			case k.UpstreamHealth == configv1.UpstreamHealth_OURS:
				return requested.Status
			}
			return publish.Combine(requested.Status, e.SourceHealth)
		}
		for i := range k.Endpoints {
			if e := &k.Endpoints[i]; canOverride(k, e) && t.overrides.wouldDecide(k, &requested.Scope, e.Key()) {
				decided++
			}
		}
		if p.Endpoints += decided; decided == 0 || k.Shadow || requested.Status == health.Healthy {
			continue
		}
		if text := k.ExplainPanic(published); text != "" {
			p.Panics = append(p.Panics, fmt.Sprintf("cluster %s: %s", k.Title(), text))
		}
	}
	slices.Sort(p.Panics)
	return p, nil
}

// wouldDecide reports whether an override of a scope would decide an endpoint of a cluster.
func (o *overrides) wouldDecide(k *catalog.Cluster, scope *health.Endpoint, e health.Endpoint) bool {
	if !coversIn(k, scope, e) {
		return false
	}
	current, kind := o.find(k, e), kindOf(scope)
	return current == nil || kindOf(&current.Scope) < kind ||
		kindOf(&current.Scope) == kind && (scope.Cluster == e.Cluster || current.Scope.Cluster != e.Cluster)
}
