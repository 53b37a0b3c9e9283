package coordinator

import (
	"hdsd/aggregate"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
)

// zoneViews are what zones see otherwise than the verdicts are.
type zoneViews map[health.EndpointID]map[health.Locality]health.Status

// zoneView names one of them.
type zoneView struct {
	id   health.EndpointID
	zone health.Locality
}

// followZones takes over what has changed of the views, and tells the zones.
func (c *core) followZones(views []aggregate.ZoneView) {
	var changed []zoneView
	for _, v := range views {
		known := c.zoneViews[v.Endpoint]
		switch {
		case !v.Over && known == nil:
			c.zoneViews[v.Endpoint] = map[health.Locality]health.Status{v.Zone: v.Status}
		case !v.Over:
			known[v.Zone] = v.Status
		case len(known) > 1:
			delete(known, v.Zone)
		default:
			delete(c.zoneViews, v.Endpoint)
		}
		changed = append(changed, zoneView{v.Endpoint, v.Zone})
	}
	c.tellZones(changed)
}

// retellZones is for endpoints about which it has changed whether hdsd's word
// counts.
func (c *core) retellZones(ids []health.EndpointID) {
	var all []zoneView
	for _, id := range ids {
		for zone := range c.zoneViews[id] {
			all = append(all, zoneView{id, zone})
		}
	}
	c.tellZones(all)
}

// tellZones has subscribers in zones be told what their zone sees, or the same
// as all.
func (c *core) tellZones(views []zoneView) {
	set, unset := map[health.Locality][]eds.Health{}, map[health.Locality][]health.EndpointID{}
	for _, v := range views {
		status, sees := c.zoneViews[v.id][v.zone]
		if sees && c.heeds(v.id) {
			set[v.zone] = append(set[v.zone], eds.Health{ID: v.id, Status: status})
		} else {
			unset[v.zone] = append(unset[v.zone], v.id)
		}
	}
	for zone, ids := range unset {
		c.eds.SetZoneHealth(zone, set[zone], ids)
		delete(set, zone)
	}
	for zone, all := range set {
		c.eds.SetZoneHealth(zone, all, nil)
	}
}

// heeds tells whether what zones see of an endpoint counts: not under an
// override, in a freeze, or where only the source's word does.
func (c *core) heeds(id health.EndpointID) bool {
	row := &c.table.rows[id]
	return row.cluster != nil && row.overridden() == nil && c.frozen.Load() == nil && row.cluster.UpstreamHealth != configv1.UpstreamHealth_THEIRS
}
