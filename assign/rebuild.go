package assign

import (
	"slices"

	"hdsd/assign/internal/quota"
)

// rebuilder takes the plan made from scratch instead of the one at hand after much
// joined at once, if that moves little. So it undoes what a lost zone had moved when
// the zone is back.
type rebuilder struct {
	fleet   *fleet
	room    *room
	forest  *forest
	seats   *seats
	repairs *repairer
}

// reconsider tries the plan from scratch. It tells whether it took it: that moves
// hardly more than what the newcomers are to have.
func (r *rebuilder) reconsider(newcomers []int32) bool {
	if len(newcomers) < 2 || len(newcomers)*20 < r.fleet.size() || !r.quiet() {
		return false
	}
	fair := 0
	for _, s := range newcomers {
		fair += int(r.room.quota(quota.Share, s))
	}
	r.seats.save()
	units := slices.Collect(r.forest.units())
	r.seats.clear(units)
	r.repairs.fill(units)
	better := r.seats.moved()*100 <= fair*105
	if !better {
		units = slices.Collect(r.forest.units())
		r.seats.clear(units)
		r.seats.restore(units)
	}
	r.seats.drop()
	return better
}

// quiet tells whether all checkers are live and nobody is a substitute, so that
// the plan can be made from scratch.
func (r *rebuilder) quiet() bool {
	for s := range int32(r.fleet.len()) {
		if r.fleet.isSeated(s) && (!r.fleet.live(s) || r.room.spare(s) > 0) {
			return false
		}
	}
	return true
}
