package query

import (
	"context"
	"slices"

	"hdsd/access"
	"hdsd/api"
	"hdsd/health"
)

// Clusters implements api.Backend.
func (b *Backend) Clusters(ctx context.Context, q api.ClusterQuery) (found []api.Cluster, more bool, err error) {
	now, err := b.Core.Snapshot(ctx)
	if err != nil {
		return nil, false, err
	}
	may, rows := b.visible(ctx), now.behind(q.After)
	if q.Cluster != "" {
		r := now.find(q.Cluster)
		if err := b.checkName(may, q.Cluster, r != nil); err != nil {
			return nil, false, err
		}
		if rows = nil; r != nil && q.After == "" {
			rows = []*row{r}
		}
	}
	for _, r := range rows {
		if !may.Has(r.name()) || !r.passes(q.Filter) {
			continue
		}
		if len(found) == q.Limit {
			return found, true, nil
		}
		k := b.describe(now, r, may)
		if q.Cluster != "" && k.Checked {
			k.HealthChecks = r.cluster.Checked.Checks()
		}
		found = append(found, k)
	}
	return found, false, nil
}

// describe returns a row as a caller with these clusters may see it.
func (b *Backend) describe(now *Snapshot, r *row, may access.Clusters) api.Cluster {
	k := r.describe(now.frozen)
	if !may.All() {
		k.Source = ""
	}
	k.NoEndpointsReason = b.Feed.NoEndpointsReason(r.cluster)
	return k
}

// passes tells whether a filter lets a cluster pass.
func (r *row) passes(f health.Filter) bool {
	if f.Any() {
		return true
	}
	inside := f.Locality == (health.Locality{})
	for i := range r.places {
		p := &r.places[i]
		for status, n := range p.counts {
			if n > 0 && f.Has(*p.locality, health.Status(status)) {
				return true
			}
		}
		inside = inside || f.In(*p.locality)
	}
	return f.Unhealthy && inside && len(r.quarantined()) > 0
}

// quarantined lists what of a cluster is not checked, and why.
func (r *row) quarantined() (all []api.Quarantined) {
	for _, q := range r.cluster.Exclusions() {
		all = append(all, api.Quarantined{Address: q.Address, Reason: q.Reason})
	}
	if r.blocked != "" {
		all = append(all, api.Quarantined{Reason: r.blocked})
	}
	for _, q := range r.cluster.Disabled {
		all = append(all, api.Quarantined{Address: q.Address, Reason: q.Reason})
	}
	return slices.Concat(all, r.stranded)
}

// describe counts a cluster's endpoints and lists those that are not checked.
func (r *row) describe(frozen bool) api.Cluster {
	k := r.cluster
	out := api.Cluster{
		Name: r.name(), Source: k.Source.Source, Checked: k.IsChecked(), Endpoints: len(k.Endpoints),
		Overridden: r.overridden, Held: r.held, Quarantined: r.quarantined(), RejectedReason: k.Rejected,
		Panic: r.panics.Reason, PanicSince: r.panics.Since,
	}
	switch {
	case k.Shadow:
		out.Mode = api.Shadow
	case frozen:
		out.Mode = api.Frozen
	}
	for i := range r.places {
		out.Add(&r.places[i].counts)
	}
	return out
}
