package query

import (
	"cmp"
	"maps"
	"slices"

	"hdsd/api"
	"hdsd/source/xds"
	"hdsd/store"
)

// addWhole adds the parts of a status for callers that may see all clusters.
func (b *Backend) addWhole(status *api.Status) {
	problems := map[string]string{}
	b.Feed.Upstreams(func(name string, known xds.Status) {
		for i := range known.Types {
			problems[name] = cmp.Or(problems[name], lastError(&known.Types[i]))
		}
	})
	for _, s := range b.Feed.Sources() {
		status.Sources = append(status.Sources, api.SourceState{Name: s.Name, Clusters: s.Clusters, Endpoints: s.Endpoints, Problem: cmp.Or(s.Problem, problems[s.Name]), Broken: s.Problem != ""})
	}
	if b.EDS != nil {
		refusing := map[string]bool{}
		if b.Refusing != nil {
			for _, r := range b.Refusing() {
				refusing[r.ID] = true
			}
		}
		status.Planes = countPlanes(subscribers(b.streams(nil)), refusing)
	}
}

// countPlanes counts data planes, each once: as refusing, else as behind, else as synced.
func countPlanes(clients []api.Client, refusing map[string]bool) (n api.PlaneCounts) {
	worst := map[string]*int{}
	for i := range clients {
		c := &clients[i]
		switch state := worst[c.ID]; {
		case c.Error > 0 || refusing[c.ID]:
			worst[c.ID] = &n.Refusing
		case c.Stale > 0 && state != &n.Refusing:
			worst[c.ID] = &n.Behind
		case state == nil:
			worst[c.ID] = &n.Synced
		}
	}
	for _, count := range worst {
		*count++
	}
	return n
}

// historyOf returns the condition of the recorded history.
func historyOf(recorded *store.Store) (h api.HistoryState, err error) {
	if recorded == nil {
		return h, nil
	}
	stats := recorded.Stats()
	h.Bytes, h.Pending = stats.Bytes, stats.Pending
	h.Oldest, err = recorded.Began()
	return h, err
}

// zonesOf counts checkers by zone.
func zonesOf(checkers []api.Checker) (zones []api.CheckersOfZone) {
	byZone := map[string]*api.CheckersOfZone{}
	for i := range checkers {
		k := &checkers[i]
		name := k.Locality.Region + "/" + k.Locality.Zone
		if byZone[name] == nil {
			byZone[name] = &api.CheckersOfZone{Zone: name}
		}
		switch z := byZone[name]; {
		case k.Connected && !k.Trusted:
			z.Connected++
			z.Troubled++
		case k.Connected:
			z.Connected++
		case k.Lost != nil:
			z.Lost++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byZone)) {
		zones = append(zones, *byZone[name])
	}
	return zones
}
