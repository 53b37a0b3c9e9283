package aggregate

import (
	"cmp"
	"slices"

	"hdsd/health"
)

// views gives what the checkers of each zone see of an endpoint, by zone: the
// majority of their votes, UNKNOWN where there are none or they are even. Doubt
// does not matter here: who is cut off does see it down.
func (a *Aggregator) views(e *endpoint) []health.ZoneVerdict {
	var list []health.ZoneVerdict
	for _, z := range a.byZone(e, believed, doubted, cutOff) {
		name := a.zones.name(z.zone)
		v := health.ZoneVerdict{Region: name[0], Zone: name[1], Up: int(z.up), Down: int(z.down)}
		if side := z.majority(); side != neither {
			v.Status = z.name(side)
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(x, y health.ZoneVerdict) int {
		return cmp.Or(cmp.Compare(x.Region, y.Region), cmp.Compare(x.Zone, y.Zone))
	})
	return list
}

// view is what the checkers of a zone say.
type view struct {
	zone uint32
	tally
}

// byZone counts the votes on an endpoint that are worth one of these, by the
// zones of their checkers.
func (a *Aggregator) byZone(e *endpoint, worth ...belief) []view {
	var zones []view
	list := a.seats.of(e)
	for i := range list {
		number := a.checkers.all[list[i].checker].zone
		at := slices.IndexFunc(zones, func(v view) bool { return v.zone == number })
		if at < 0 {
			at = len(zones)
			zones = append(zones, view{zone: number})
		}
		if !slices.Contains(worth, a.believe(e, &list[i])) {
			continue
		}
		zones[at].votes[list[i].status]++
		switch sideOf(list[i].status) {
		case up:
			zones[at].up++
		case down:
			zones[at].down++
		}
	}
	return zones
}
