package quota

// Demand is what endpoints ask of the checkers of a class. Checks are counted in
// parts, as quotas are, so that rounding errors do not add up.
type Demand struct {
	Class uint32
	Seats int64   // how many checks
	Cost  int64   // of all of them: checks in 1,000 seconds
	Lo    []int64 // how many checks must go to each zone
	Hi    []int64 // how many can
	Each  []int64 // how many a checker of the zone can have at most

	cohorts [][]int32 // that can have them, by zone
	took    []int64   // how many each cohort has
	level   int64     // up to which they fill their cohorts
}

// NewDemand makes an empty Demand.
func NewDemand(class uint32, zones int) Demand {
	return Demand{Class: class, Lo: make([]int64, zones), Hi: make([]int64, zones), Each: make([]int64, zones)}
}

// Parts is how many parts some checks are.
func Parts(checks int) int64 { return int64(checks) << quotaBits }

// Add adds the checks of some endpoints that have so many seats each, and cost so
// much for each seat.
func (d *Demand) Add(endpoints, seats int, rate int64) {
	d.Seats += Parts(endpoints) * int64(seats)
	d.Cost += int64(endpoints) * int64(seats) * rate
}

// Allow says how many of some endpoints' seats in a zone are at least and at most
// there, for each of them.
func (d *Demand) Allow(zone int32, endpoints, least, most int) {
	d.Lo[zone] += Parts(endpoints) * int64(least)
	d.Hi[zone] += Parts(endpoints) * int64(most)
	d.Each[zone] += Parts(endpoints)
}
