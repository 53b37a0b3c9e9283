package ruling

import (
	"fmt"
	"slices"

	"hdsd/coordinator/catalog"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/store"
)

// Preview is the effect of an override that nobody has set yet.
type Preview struct {
	Override           // Endpoints counts those that it would decide
	Replaced *Override // nil: none
	Panics   []string  // a text for each cluster for which Envoys would be in panic; none for HEALTHY
}

// PreviewOverride returns the effect that SetOverride would have, and changes nothing. The error is a
// *Refusal.
func (t *Table) PreviewOverride(asked store.Override) (p Preview, err error) {
	if err := t.Overridable(&asked.Scope); err != nil {
		return p, err
	}
	p.Override.Override, p.Replaced = asked, t.overrides.all[asked.Scope]
	for k := range t.clusters.within(&asked.Scope) {
		decided := 0
		published := func(e *catalog.Endpoint) health.Status {
			switch {
			case !canOverride(k, e) || !t.overrides.wouldDecide(k, &asked.Scope, e.Key()):
				p, _ := t.Published(k, e)
				return p.Status
			case k.UpstreamHealth == configv1.UpstreamHealth_OURS:
				return asked.Status
			}
			return eds.Combine(asked.Status, e.SourceHealth)
		}
		for i := range k.Endpoints {
			if e := &k.Endpoints[i]; canOverride(k, e) && t.overrides.wouldDecide(k, &asked.Scope, e.Key()) {
				decided++
			}
		}
		if p.Endpoints += decided; decided == 0 || k.Shadow || asked.Status == health.Healthy {
			continue
		}
		if text := k.ExplainPanic(published); text != "" {
			p.Panics = append(p.Panics, fmt.Sprintf("cluster %s: %s", k.Source.Outside(), text))
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
	before, kind := o.of(k, e), kindOf(scope)
	return before == nil || kindOf(&before.Scope) < kind ||
		kindOf(&before.Scope) == kind && (scope.Cluster == e.Cluster || before.Scope.Cluster != e.Cluster)
}
