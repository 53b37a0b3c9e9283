package aggregate

import "hdsd/health"

// Majority reports whether most votes that count on an endpoint are up. It is not ok if none
// counts, or if it is a tie.
func (a *Aggregator) Majority(id health.EndpointID) (isUp, ok bool) {
	e := a.roster.endpoint(id)
	if e == nil {
		return false, false
	}
	var t tally
	a.counter.tally(id, a.settings.ofEndpoint(e), e, &t)
	side := count{up: t.up, down: t.down}.majority()
	return side == up, side != neither
}
