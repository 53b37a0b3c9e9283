package quota

// Demand is the checks that the endpoints of a class need. It counts checks in parts, as quotas
// are, so that rounding errors do not add up.
type Demand struct {
	Class uint32
	Seats int64   // number of checks
	Cost  int64   // cost of all checks: checks in 1,000 seconds
	Lo    []int64 // least checks in each zone
	Hi    []int64 // most checks in each zone
	Each  []int64 // most checks at one checker of the zone

	cohorts [][]int32 // cohorts that can serve it, by zone
	took    []int64   // checks of each cohort
	level   int64     // level up to which it fills its cohorts
}

// NewDemand makes an empty Demand.
func NewDemand(class uint32, zones int) Demand {
	return Demand{Class: class, Lo: make([]int64, zones), Hi: make([]int64, zones), Each: make([]int64, zones)}
}

// Parts converts a number of checks to parts.
func Parts(checks int) int64 { return int64(checks) << quotaBits }

// Add adds the checks of endpoints with the given number of seats each. Each seat
// costs rate.
func (d *Demand) Add(endpoints, seats int, rate int64) {
	d.Seats += Parts(endpoints) * int64(seats)
	d.Cost += int64(endpoints) * int64(seats) * rate
}

// Allow sets the minimum and maximum of seats that each of the given endpoints may have in a
// zone.
func (d *Demand) Allow(zone int32, endpoints, minimum, maximum int) {
	d.Lo[zone] += Parts(endpoints) * int64(minimum)
	d.Hi[zone] += Parts(endpoints) * int64(maximum)
	d.Each[zone] += Parts(endpoints)
}
