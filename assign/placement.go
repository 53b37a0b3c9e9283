package assign

// Placement says in which zones an endpoint's checkers are to be, or in which
// regions.
type Placement uint8

// The placements. An endpoint that has no zone of its own is treated as if
// OwnOnly and OwnFirst were Spread.
const (
	Default  Placement = iota // Spread for zones, Anywhere for regions
	Spread                    // in distinct ones as far as there are, one of them its own
	OwnOnly                   // in its own, and nowhere else
	OwnFirst                  // in its own as far as there are checkers, the others spread
	Anywhere                  // all the same
)

// grades of a zone or region for one more seat; a zone's tier is its region's
// grade and its own.
const (
	grades = 3
	never  = grades * grades // not at all
)

// grade tells how good a place is that is a unit's own or not, and used by
// another of its seats or not.
func (p Placement) grade(homeless, own, used bool) int {
	if p == Anywhere {
		return 0
	}
	if p == OwnOnly && !homeless {
		if own {
			return 0
		}
		return never
	}
	switch {
	case own && (p == OwnFirst || !used):
		return 0
	case used:
		return 2
	}
	return 1
}

// tier tells how good a zone is for one more seat of a unit whose others are
// tallied: less is better, never is not at all.
func (p *Planner) tier(u *unit, z int32) int {
	k := &p.kinds[u.kind]
	homeless := u.zone == none
	region := 0
	if k.regions != Anywhere {
		r := p.zones.Region(z)
		region = k.regions.grade(homeless, !homeless && r == p.zones.Region(u.zone), p.usedRegions[r] > 0)
	}
	return min(region*grades+k.zones.grade(homeless, z == u.zone, p.used[z] > 0), never)
}

// ideal is the best tier that a zone could have that has checkers now or in
// time to come, for a unit whose seats are tallied.
func (p *Planner) ideal(u *unit) int {
	k := &p.kinds[u.kind]
	homeless := u.zone == none
	elsewhere := k.regions.grade(homeless, false, false)*grades + k.zones.grade(homeless, false, false)
	if homeless {
		return elsewhere
	}
	beside := k.regions.grade(false, true, p.usedRegions[p.zones.Region(u.zone)] > 0)*grades + k.zones.grade(false, false, false)
	return min(p.tier(u, u.zone), beside, elsewhere)
}

// discount takes one seat out of a unit's tallies, or puts it in (-1).
func (p *Planner) discount(s int32, by int32) {
	if z := p.home[s]; z != none {
		p.used[z] -= by
		p.usedRegions[p.zones.Region(z)] -= by
	}
}

// standing is the tier of a seat among the others, which are tallied with it.
func (p *Planner) standing(u *unit, s int32) int {
	z := p.home[s]
	if z == none {
		return 0 // that is known when its checker is back
	}
	p.discount(s, 1)
	t := p.tier(u, z)
	p.discount(s, -1)
	return t
}
