package aggregate

import (
	"cmp"
	"slices"
	"time"

	"hdsd/health"
)

// ZoneView reports that the checkers of a zone see an endpoint on the other side of
// the verdict, and have for some time. Only Options.ZoneViews enables zone views.
//
// A zone's view is the majority of its checkers that are believed, or that only a cut
// path keeps from being believed. If these do not reach the endpoint, neither do the
// data planes beside them. A view must last for the staleness. So it does not depend
// on which checker is first to see a change, or is about to be doubted.
type ZoneView struct {
	Endpoint health.EndpointID
	Zone     health.Locality // region and zone; without a region, all zones of that name
	Status   health.Status   // undefined if Over
	Over     bool            // the checkers see the same as the verdict again
}

// differingView is a ZoneView that was reported, or will be if it lasts.
type differingView struct {
	zone     health.Locality
	status   health.Status
	due      tick // when it has lasted for long enough
	reported bool
	otherDue tick // when the other name of a down has lasted for long enough; 0: it is not seen
}

// zoneViews tracks the zones whose view of an endpoint differs from its verdict.
type zoneViews struct {
	clock     *clock
	deadlines *deadlines
	zones     *zones
	effects   *Effects
	differing map[health.EndpointID][]differingView
}

// update compares the zones' views of an endpoint with its verdict. It reports a view that has
// lasted. A view that stays down keeps its name until the other has lasted, too.
func (v *zoneViews) update(id health.EndpointID, verdict health.Status, byZone []zoneTally, lasts, renamed time.Duration) {
	previous := v.differing[id]
	var now []differingView
	for _, z := range v.byLocality(byZone) {
		side := z.majority()
		if side == neither || side == sideOf(verdict) {
			continue
		}
		view := differingView{zone: z.zone}
		if i := slices.IndexFunc(previous, func(b differingView) bool { return b.zone == z.zone }); i >= 0 {
			view = previous[i]
		} else {
			view.due = v.clock.tickAfter(lasts)
			v.deadlines.add(view.due, deadline{id, dueZoneView})
		}
		status := v.named(id, &view, z.name(side), renamed)
		if lasted := view.due <= v.clock.tick(); lasted && (!view.reported || view.status != status) {
			view.reported = true
			v.effects.ZoneViews = append(v.effects.ZoneViews, ZoneView{Endpoint: id, Zone: view.zone, Status: status})
		}
		view.status = status
		now = append(now, view)
	}
	v.replace(id, now)
}

// named returns the status under which a view is reported.
func (v *zoneViews) named(id health.EndpointID, view *differingView, seen health.Status, renamed time.Duration) health.Status {
	switch {
	case !view.reported || !seen.Down() || !view.status.Down() || seen == view.status:
		view.otherDue = 0
	case view.otherDue == 0:
		view.otherDue = v.clock.tickAfter(renamed)
		v.deadlines.add(view.otherDue, deadline{id, dueZoneView})
		return view.status
	case view.otherDue > v.clock.tick():
		return view.status
	default:
		view.otherDue = 0
	}
	return seen
}

// replace records the views that differ, and reports the views that ended.
func (v *zoneViews) replace(id health.EndpointID, now []differingView) {
	for _, b := range v.differing[id] {
		if b.reported && !slices.ContainsFunc(now, func(n differingView) bool { return n.zone == b.zone }) {
			v.effects.ZoneViews = append(v.effects.ZoneViews, ZoneView{Endpoint: id, Zone: b.zone, Over: true})
		}
	}
	if len(now) > 0 {
		v.differing[id] = now
	} else {
		delete(v.differing, id)
	}
}

// forget ends all views of an endpoint.
func (v *zoneViews) forget(id health.EndpointID) { v.replace(id, nil) }

// localityTally is the tally of a zone, or of all zones with one name.
type localityTally struct {
	zone health.Locality
	tally
}

// byLocality adds the region and zone to each tally. For each zone name with a
// region, it adds a tally of all zones with that name.
func (v *zoneViews) byLocality(byZone []zoneTally) (list []localityTally) {
	for _, z := range byZone {
		name := v.zones.name(z.zone)
		if name[1] == "" {
			continue
		}
		if name[0] != "" {
			list = append(list, localityTally{health.Locality{Region: name[0], Zone: name[1]}, z.tally})
		}
		named := health.Locality{Zone: name[1]}
		i := slices.IndexFunc(list, func(t localityTally) bool { return t.zone == named })
		if i < 0 {
			list = append(list, localityTally{named, z.tally})
			continue
		}
		list[i].up, list[i].down = list[i].up+z.up, list[i].down+z.down
		for s := range z.votes {
			list[i].votes[s] += z.votes[s]
		}
	}
	return list
}

// verdicts returns the majority of each zone, or UNKNOWN for no votes or a tie. The list must
// not be modified.
func (z *zones) verdicts(byZone []zoneTally) []health.ZoneVerdict {
	list := z.shown.room[:0]
	for i := range byZone {
		t := &byZone[i]
		name := z.name(t.zone)
		v := health.ZoneVerdict{Region: name[0], Zone: name[1], Up: int(t.up), Down: int(t.down)}
		if side := t.majority(); side != neither {
			v.Status = t.name(side)
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(x, y health.ZoneVerdict) int {
		return cmp.Or(cmp.Compare(x.Region, y.Region), cmp.Compare(x.Zone, y.Zone))
	})
	return z.shown.share(list)
}
