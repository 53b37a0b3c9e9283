package ruling

import (
	"hdsd/aggregate"
	"hdsd/coordinator/decision"
	"hdsd/eds"
	"hdsd/health"
)

// zoneViews holds the health that zones see where it differs from the verdict.
type zoneViews map[health.EndpointID]map[health.Locality]health.Status

// zoneView names one of them.
type zoneView struct {
	id   health.EndpointID
	zone health.Locality
}

// apply applies changed views, and returns which.
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

// of returns the views of endpoints.
func (z zoneViews) of(ids []health.EndpointID) (found []zoneView) {
	for _, id := range ids {
		for zone := range z[id] {
			found = append(found, zoneView{id, zone})
		}
	}
	return found
}

// health returns what to publish of these views: what the zone sees if that counts, else
// the same as for all zones.
func (z zoneViews) health(views []zoneView, counts func(health.EndpointID) bool) (all []decision.ZoneHealth) {
	at := map[health.Locality]int{}
	for _, v := range views {
		i, ok := at[v.zone]
		if !ok {
			i = len(all)
			at[v.zone] = i
			all = append(all, decision.ZoneHealth{Zone: v.zone})
		}
		if status, sees := z[v.id][v.zone]; sees && counts(v.id) {
			all[i].Set = append(all[i].Set, eds.Health{ID: v.id, Status: status})
		} else {
			all[i].Unset = append(all[i].Unset, v.id)
		}
	}
	return all
}
