package query

import (
	"context"
	"slices"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/access"
)

// Clusters implements api.Backend.
func (b *Backend) Clusters(ctx context.Context, q api.ClusterQuery) (found []api.Cluster, more bool, err error) {
	now, err := b.Core.Snapshot(ctx)
	if err != nil {
		return nil, false, err
	}
	visible, rows := b.visible(ctx), now.behind(q.After)
	if q.Cluster != "" {
		rows = now.versions(q.Cluster)
		if err := b.checkName(visible, q.Cluster, len(rows) > 0); err != nil {
			return nil, false, err
		}
		rows = slices.DeleteFunc(rows, func(r *row) bool { return r.compare(q.After) <= 0 })
	}
	for _, r := range rows {
		if !visible.Has(r.name()) || !r.passes(q.Filter) {
			continue
		}
		if len(found) == q.Limit {
			return found, true, nil
		}
		k := b.describe(now, r, visible)
		if q.Cluster != "" && k.Checked {
			k.HealthChecks = r.cluster.Checked.Checks()
		}
		found = append(found, k)
	}
	return found, false, nil
}

// describe returns a row as a caller with these clusters may see it.
func (b *Backend) describe(now *Snapshot, r *row, visible access.Clusters) api.Cluster {
	k := r.describe(now.frozen)
	if !visible.All() {
		k.Source = ""
	}
	k.NoEndpointsReason = b.Feed.NoEndpointsReason(r.cluster, visible.All())
	return k
}

// passes reports whether a filter lets a cluster pass.
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

// quarantined lists the unchecked parts of a cluster, with reasons.
func (r *row) quarantined() (list []api.Quarantined) {
	for _, q := range r.cluster.Exclusions() {
		list = append(list, api.Quarantined{Address: q.Address, Reason: q.Reason})
	}
	if r.blocked != "" {
		list = append(list, api.Quarantined{Reason: r.blocked})
	}
	for _, q := range r.cluster.Disabled {
		list = append(list, api.Quarantined{Address: q.Address, Reason: q.Reason})
	}
	return slices.Concat(list, r.stranded)
}

// describe counts a cluster's endpoints and lists those that are not checked.
func (r *row) describe(frozen bool) api.Cluster {
	k := r.cluster
	cluster := api.Cluster{
		Name: r.name(), Version: k.Version(), Source: k.Source.Source, Checked: k.IsChecked(), Endpoints: len(k.Endpoints),
		Overridden: r.overridden, Held: r.held, Quarantined: r.quarantined(), RejectedReason: k.Rejected,
		Panic: r.panics.Reason, PanicSince: r.panics.Since,
	}
	switch {
	case k.Shadow:
		cluster.Mode = api.Shadow
	case frozen:
		cluster.Mode = api.Frozen
	}
	for i := range r.places {
		cluster.Add(&r.places[i].counts)
	}
	return cluster
}
