package ruling

import (
	"maps"
	"slices"

	"hdsd/aggregate"
	"hdsd/health"
	"hdsd/publish"
)

// zoneViews holds the health that zones see, if it differs from the verdict.
type zoneViews map[health.EndpointID]map[health.Locality]health.Status

// zoneView names one of the views.
type zoneView struct {
	id   health.EndpointID
	zone health.Locality
}

// apply applies changed views, and returns their names.
func (z zoneViews) apply(views []aggregate.ZoneView) (changed []zoneView) {
	for _, v := range views {
		seen := z[v.Endpoint]
		switch {
		case !v.Over && seen == nil:
			z[v.Endpoint] = map[health.Locality]health.Status{v.Zone: v.Status}
		case !v.Over:
			seen[v.Zone] = v.Status
		case len(seen) > 1:
			delete(seen, v.Zone)
		default:
			delete(z, v.Endpoint)
		}
		changed = append(changed, zoneView{v.Endpoint, v.Zone})
	}
	return changed
}

// views returns the views of endpoints, by zone for each.
func (z zoneViews) views(ids []health.EndpointID) (found []zoneView) {
	for _, id := range ids {
		for _, zone := range slices.SortedFunc(maps.Keys(z[id]), health.Locality.Compare) {
			found = append(found, zoneView{id, zone})
		}
	}
	return found
}

// health returns the health to publish for these views: that of the zone if it counts, else
// that of all zones.
func (z zoneViews) health(views []zoneView, counts func(health.EndpointID) bool) (list []publish.ZoneHealth) {
	index := map[health.Locality]int{}
	for _, v := range views {
		i, ok := index[v.zone]
		if !ok {
			i = len(list)
			index[v.zone] = i
			list = append(list, publish.ZoneHealth{Zone: v.zone})
		}
		if status, sees := z[v.id][v.zone]; sees && counts(v.id) {
			list[i].Set = append(list[i].Set, publish.Health{ID: v.id, Status: status})
		} else {
			list[i].Unset = append(list[i].Unset, v.id)
		}
	}
	return list
}
