package query

import (
	"cmp"
	"maps"
	"slices"

	"hdsd/api"
	"hdsd/source/xds"
)

// addWhole adds to a status what callers see who may see all clusters.
func (b *Backend) addWhole(out *api.Status) {
	problems := map[string]string{}
	b.Feed.Upstreams(func(name string, known xds.Status) {
		for i := range known.Types {
			problems[name] = cmp.Or(problems[name], lastError(&known.Types[i]))
		}
	})
	for _, s := range b.Feed.Sources() {
		out.Sources = append(out.Sources, api.SourceState{Name: s.Name, Clusters: s.Clusters, Endpoints: s.Endpoints, Problem: cmp.Or(s.Problem, problems[s.Name]), Broken: s.Problem != ""})
	}
	if b.EDS != nil {
		refusing := map[string]bool{}
		if b.Refusing != nil {
			for _, r := range b.Refusing() {
				refusing[r.ID] = true
			}
		}
		out.Planes = countPlanes(subscribers(b.streams(nil)), refusing)
	}
}

// countPlanes counts data planes, each once: as refusing, else as behind, else as synced.
func countPlanes(clients []api.Client, refusing map[string]bool) (n api.PlaneCounts) {
	worst := map[string]*int{}
	for i := range clients {
		c := &clients[i]
		switch is := worst[c.ID]; {
		case c.Error > 0 || refusing[c.ID]:
			worst[c.ID] = &n.Refusing
		case c.Stale > 0 && is != &n.Refusing:
			worst[c.ID] = &n.Behind
		case is == nil:
			worst[c.ID] = &n.Synced
		}
	}
	for _, count := range worst {
		*count++
	}
	return n
}

// history says how the recorded history is.
func (b *Backend) history() (h api.HistoryState, err error) {
	if b.Store == nil {
		return h, nil
	}
	stats := b.Store.Stats()
	h.Bytes, h.Pending = stats.Bytes, stats.Pending
	h.Oldest, err = b.Store.Began()
	return h, err
}

// zonesOf counts checkers by zone.
func zonesOf(all []api.Checker) (zones []api.CheckersOfZone) {
	at := map[string]*api.CheckersOfZone{}
	for i := range all {
		k := &all[i]
		name := k.Locality.Region + "/" + k.Locality.Zone
		if at[name] == nil {
			at[name] = &api.CheckersOfZone{Zone: name}
		}
		switch z := at[name]; {
		case k.Connected && !k.Trusted:
			z.Connected++
			z.Troubled++
		case k.Connected:
			z.Connected++
		case k.Lost != nil:
			z.Lost++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(at)) {
		zones = append(zones, *at[name])
	}
	return zones
}
