package query

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"hdsd/api"
	"hdsd/coordinator/attention"
	"hdsd/health"
	"hdsd/peer/access"
)

// Overview implements api.Backend.
func (b *Backend) Overview(ctx context.Context, limit int) (found api.Overview, err error) {
	now, err := b.Core.Snapshot(ctx)
	if err != nil {
		return found, err
	}
	worst, total := now.worst(limit, b.visible(ctx))
	for i := range worst {
		found.Clusters = append(found.Clusters, worst[i].overview())
	}
	found.Further = total - len(worst)
	return found, nil
}

// badness orders states.
var badness = map[attention.State]int{
	attention.AllDown: 0, attention.NoneHealthy: 1, attention.HalfDown: 2, attention.SomeDown: 3, attention.Unchecked: 4, attention.Unobserved: 5, attention.OK: 6,
}

// judgedRow is a row with its state.
type judgedRow struct {
	*row
	attention.Group
	state attention.State
}

// worst returns up to limit of the worst checked clusters, and the number of all.
func (s *Snapshot) worst(limit int, visible access.Clusters) (worst []judgedRow, total int) {
	sort := func() {
		slices.SortFunc(worst, worse)
		worst = worst[:min(limit, len(worst))]
	}
	full := false
	for _, r := range s.rows {
		if !r.cluster.IsChecked() && !r.cluster.IsUncheckable() || len(r.cluster.Endpoints) == 0 || !visible.Has(r.name()) {
			continue
		}
		total++
		judged := r.judge()
		if full && (limit == 0 || worse(worst[limit-1], judged) < 0) {
			continue
		}
		if worst = append(worst, judged); len(worst) > 2*limit {
			sort()
			full = true
		}
	}
	sort()
	return worst, total
}

// worse orders rows.
func worse(a, b judgedRow) int {
	return cmp.Or(
		cmp.Compare(badness[a.state], badness[b.state]),
		cmp.Compare(b.Down*a.Endpoints, a.Down*b.Endpoints), // by share
		cmp.Compare(b.Down, a.Down),
		cmp.Compare(a.Name, b.Name),
	)
}

// judge determines the state of a cluster as a whole.
func (r *row) judge() judgedRow {
	g := attention.Group{Name: r.name(), Version: r.cluster.Version()}
	for i := range r.places {
		r.places[i].addTo(&g)
	}
	if !r.cluster.IsChecked() {
		return judgedRow{r, g, attention.Unchecked}
	}
	return judgedRow{r, g, attention.StateOf(g.Endpoints, g.Down, g.Up, r.observed)}
}

// overview shows a cluster by zone.
func (r *judgedRow) overview() api.ClusterOverview {
	zones := map[health.Locality]*attention.Group{}
	for i := range r.places {
		p := &r.places[i]
		zone := health.Locality{Region: p.locality.Region, Zone: p.locality.Zone}
		if zones[zone] == nil {
			zones[zone] = &attention.Group{}
		}
		p.addTo(zones[zone])
	}
	overview := api.ClusterOverview{Cluster: r.Name, Version: r.Version, State: r.state.String(), Endpoints: r.Endpoints, Down: r.Down}
	for _, zone := range slices.SortedFunc(maps.Keys(zones), health.Locality.Compare) {
		overview.Zones = append(overview.Zones, api.ZoneOverview{Zone: zone, Endpoints: zones[zone].Endpoints, Down: zones[zone].Down})
	}
	return overview
}
