package assign

import "hdsd/assign/internal/zone"

// tally counts the seats of one unit by zone and region, and grades zones for one
// more. Count begins; what is asked then is about that unit.
type tally struct {
	table         *zone.Table
	fleet         *fleet
	zones, region []int32 // seats in each
}

// grow makes room for as many zones and regions as there are. It tells whether
// there are more zones than before.
func (t *tally) grow() (more bool) {
	for len(t.zones) < t.table.Len() {
		t.zones = append(t.zones, 0)
		more = true
	}
	for len(t.region) < t.table.Regions() {
		t.region = append(t.region, 0)
	}
	return more
}

// count counts a unit's seats. It tells whether a seat is in a zone that is not
// known yet.
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
		t.add(s, 1)
	}
}

// add adds a seat, or takes one away (-1).
func (t *tally) add(s, by int32) {
	if z := t.fleet.zone(s); z != none {
		t.zones[z] += by
		t.region[t.table.Region(z)] += by
	}
}

// tier is how good a zone is for one more seat.
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

// tierOf is the tier of a checker's zone.
func (t *tally) tierOf(u *unit, s int32) int { return t.tier(u, t.fleet.zone(s)) }

// ideal is the best tier that a zone could have for one more seat, with checkers
// there or not.
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

// standing is the tier of a seat that is counted, among the others.
func (t *tally) standing(u *unit, s int32) int {
	z := t.fleet.zone(s)
	if z == none {
		return 0 // that is known when its checker is back
	}
	t.add(s, -1)
	tier := t.tier(u, z)
	t.add(s, 1)
	return tier
}

// remove takes a seat out, and returns its standing.
func (t *tally) remove(u *unit, s int32) (standing int) {
	standing = t.standing(u, s)
	t.add(s, -1)
	return standing
}

// crowded tells whether a plain unit has two seats in a zone, or none in its own.
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

// grade gives zones their tiers.
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
