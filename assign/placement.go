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

// A zone and its region each have a grade for one more seat of a unit; the zone's
// tier is made of both. Less is better.
const (
	grades = 3
	never  = grades * grades // not at all
)

// grade is how good a zone or region is that is the unit's own or not, and used by
// another of its seats or not. A unit is homeless if its endpoints have no zone.
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
