package aggregate

import (
	"slices"

	"hdsd/health"
)

// ZoneView is what the checkers of a zone see an endpoint to be, for some time,
// where the verdict is on the other side. There are none unless
// Options.ZoneViews asks for them.
//
// A zone's view is the majority of its checkers that are believed, or would be
// but for a cut path: they do not get there, and nor do those beside them. It
// has to last for the staleness, so that nobody matters who is the first to see
// something, or who is about to be doubted.
type ZoneView struct {
	Endpoint health.EndpointID
	Zone     health.Locality // region and zone; without a region, all zones of that name together
	Status   health.Status   // of no meaning where it is over
	Over     bool            // the verdict is what they see, too
}

// dissent is a ZoneView that was told, or is to be if it lasts.
type dissent struct {
	zone   health.Locality
	status health.Status
	due    tick // when it has lasted
	told   bool
}

// compareZones follows what the zones see of an endpoint, once it is decided.
func (a *Aggregator) compareZones(id health.EndpointID) {
	e, before := &a.endpoints[id], a.dissents[id]
	var now []dissent
	if e.flags&known != 0 && e.since != never {
		now = a.dissenting(id, e, before)
	}
	for _, d := range before {
		if d.told && !slices.ContainsFunc(now, func(n dissent) bool { return n.zone == d.zone }) {
			a.effects.ZoneViews = append(a.effects.ZoneViews, ZoneView{Endpoint: id, Zone: d.zone, Over: true})
		}
	}
	if len(now) == 0 {
		delete(a.dissents, id)
		return
	}
	if a.dissents == nil {
		a.dissents = map[health.EndpointID][]dissent{}
	}
	a.dissents[id] = now
}

// dissenting gives the zones that are on the other side than the verdict, and
// tells of those that have been for long enough.
func (a *Aggregator) dissenting(id health.EndpointID, e *endpoint, before []dissent) (now []dissent) {
	for _, z := range a.byLocality(e) {
		side := z.majority()
		if side == neither || side == sideOf(e.status) {
			continue
		}
		d := dissent{zone: z.zone}
		if i := slices.IndexFunc(before, func(b dissent) bool { return b.zone == z.zone }); i >= 0 {
			d = before[i]
		} else {
			d.due = a.clock.in(a.clock.elapsed, a.staleness(a.policyOf(e).class))
			a.deadlines.add(d.due, pair{id, ofZones})
		}
		status := z.name(side)
		if lasted := d.due <= a.clock.tick(); lasted && (!d.told || d.status != status) {
			d.told = true
			a.effects.ZoneViews = append(a.effects.ZoneViews, ZoneView{Endpoint: id, Zone: d.zone, Status: status})
		}
		d.status = status
		now = append(now, d)
	}
	return now
}

// zoneTally is what the checkers of a zone say, or those of all zones of a name.
type zoneTally struct {
	zone health.Locality
	tally
}

// byLocality is byZone, with all zones of a name together beside each of those
// that have a region.
func (a *Aggregator) byLocality(e *endpoint) (all []zoneTally) {
	for _, v := range a.byZone(e, believed, cutOff) {
		name := a.zones.name(v.zone)
		if name[1] == "" {
			continue
		}
		if name[0] != "" {
			all = append(all, zoneTally{health.Locality{Region: name[0], Zone: name[1]}, v.tally})
		}
		named := health.Locality{Zone: name[1]}
		i := slices.IndexFunc(all, func(t zoneTally) bool { return t.zone == named })
		if i < 0 {
			all = append(all, zoneTally{named, v.tally})
			continue
		}
		all[i].up, all[i].down = all[i].up+v.up, all[i].down+v.down
		for s := range v.votes {
			all[i].votes[s] += v.votes[s]
		}
	}
	return all
}
