package assign

// Placement says in which zones or regions an endpoint's checkers should be.
type Placement uint8

// The placements. For an endpoint without a zone, OwnOnly and OwnFirst mean Spread.
const (
	Default  Placement = iota // Spread for zones, Anywhere for regions
	Spread                    // in distinct ones if there are enough, one of them its own
	OwnOnly                   // only in its own
	OwnFirst                  // in its own if that has enough checkers, the rest spread
	Anywhere                  // in any
)

// A zone and its region each have a grade for one more seat of a unit. The zone's
// tier combines both. Lower is better.
const (
	grades = 3
	never  = grades * grades // not allowed
)

// grade rates a zone or region for one more seat. It depends on whether this is the
// unit's own, and whether another of its seats is there. A unit is homeless if its
// endpoints have no zone.
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
