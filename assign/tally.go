package assign

import "hdsd/assign/internal/zone"

// tally counts the seats of one unit by zone and region, and grades zones for one
// more. Its other methods refer to the unit of the latest count.
type tally struct {
	table         *zone.Table
	fleet         *fleet
	zones, region []int32 // seats in each
}

// grow makes room for all zones and regions, and reports whether there are new zones.
func (t *tally) grow() (grown bool) {
	for len(t.zones) < t.table.Len() {
		t.zones = append(t.zones, 0)
		grown = true
	}
	for len(t.region) < t.table.Regions() {
		t.region = append(t.region, 0)
	}
	return grown
}

// count counts a unit's seats. It reports whether the zone of any seat is unknown.
func (t *tally) count(u *unit) (unknown bool) {
	clear(t.zones)
	clear(t.region)
	for _, s := range u.seats {
		t.add(s, 1)
		unknown = unknown || t.fleet.zone(s) == none
	}
	return unknown
}

// countLive counts a unit's live checkers.
func (t *tally) countLive(u *unit) {
	clear(t.zones)
	clear(t.region)
	for _, s := range u.seats {
		if t.fleet.live(s) {
			t.add(s, 1)
		}
	}
	for _, s := range u.substitutes {
		if t.fleet.live(s) {
			t.add(s, 1)
		}
	}
}

// add adds a seat to the counts, or removes one if n is -1.
func (t *tally) add(s, n int32) {
	if z := t.fleet.zone(s); z != none {
		t.zones[z] += n
		t.region[t.table.Region(z)] += n
	}
}

// tier returns how good a zone is for one more seat; lower is better.
func (t *tally) tier(u *unit, z int32) int {
	k := u.kind
	homeless := u.zone == none
	region := 0
	if k.regions != Anywhere {
		r := t.table.Region(z)
		region = k.regions.grade(homeless, !homeless && r == t.table.Region(u.zone), t.region[r] > 0)
	}
	return min(region*grades+k.zones.grade(homeless, z == u.zone, t.zones[z] > 0), never)
}

// tierOf returns the tier of a checker's zone.
func (t *tally) tierOf(u *unit, s int32) int { return t.tier(u, t.fleet.zone(s)) }

// ideal returns the best tier that any zone could have for one more seat, even
// without checkers.
func (t *tally) ideal(u *unit) int {
	k := u.kind
	homeless := u.zone == none
	elsewhere := k.regions.grade(homeless, false, false)*grades + k.zones.grade(homeless, false, false)
	if homeless {
		return elsewhere
	}
	beside := k.regions.grade(false, true, t.region[t.table.Region(u.zone)] > 0)*grades + k.zones.grade(false, false, false)
	return min(t.tier(u, u.zone), beside, elsewhere)
}

// standing returns the tier of a counted seat among the other seats.
func (t *tally) standing(u *unit, s int32) int {
	z := t.fleet.zone(s)
	if z == none {
		return 0 // unknown until its checker is back
	}
	t.add(s, -1)
	tier := t.tier(u, z)
	t.add(s, 1)
	return tier
}

// remove removes a seat from the counts, and returns its standing.
func (t *tally) remove(u *unit, s int32) (standing int) {
	standing = t.standing(u, s)
	t.add(s, -1)
	return standing
}

// crowded reports whether a plain unit has two seats in one zone, or none in its own.
func (t *tally) crowded(u *unit) bool {
	known := false
	for _, s := range u.seats {
		if z := t.fleet.zone(s); z != none {
			known = true
			if t.zones[z] > 1 {
				return true
			}
		}
	}
	return known && u.zone != none && t.zones[u.zone] == 0
}

// grade sets the tiers of zones.
func (t *tally) grade(u *unit, zones []rank) {
	if u.kind.plain() {
		for i := range zones {
			z := zones[i].zone
			switch {
			case t.zones[z] > 0:
				zones[i].tier = 2
			case z == u.zone:
				zones[i].tier = 0
			default:
				zones[i].tier = 1
			}
		}
		return
	}
	for i := range zones {
		zones[i].tier = int32(t.tier(u, zones[i].zone))
	}
}
