package assign

import (
	"slices"

	"hdsd/assign/internal/quota"
)

// rebuilder tries a plan made from scratch after many checkers join at once, and
// takes it if it moves little. So when a lost zone is back, it undoes the moves that
// the loss caused.
type rebuilder struct {
	fleet   *fleet
	room    *room
	forest  *forest
	seats   *seats
	repairs *repairer
}

// reconsider tries the plan from scratch, and returns whether it took it. It takes
// the plan if that moves hardly more checks than the newcomers' share.
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

// quiet reports whether all checkers are present and none is a substitute, which a plan
// made from scratch requires.
func (r *rebuilder) quiet() bool {
	for s := range int32(r.fleet.len()) {
		if r.fleet.isSeated(s) && (!r.fleet.present(s) || r.room.spare(s) > 0) {
			return false
		}
	}
	return true
}
