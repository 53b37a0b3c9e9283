package aggregate

import (
	"time"

	"hdsd/health"
)

// waits makes endpoints wait: for those who are absent, or until a change has
// lasted. One wait takes the place of the other.
type waits struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	presence  *presence
	records   *records
}

// awaitAbsent awaits those who are absent: after a time in which nobody was heard,
// the first to come back must not decide alone.
func (w *waits) awaitAbsent(id health.EndpointID, e *endpoint) {
	w.begin(id, e, awaitsAbsent, w.settings.awaitFor())
}

func (w *waits) begin(id health.EndpointID, e *endpoint, wait flags, d time.Duration) {
	at := w.clock.in(d)
	e.clear(awaitsAbsent | awaitsConfirmation)
	e.set(wait)
	e.waitUntil = uint32(at)
	w.deadlines.add(at, deadline{id, noChecker})
}

// due ends the wait of an endpoint, if this is the deadline that it waits for.
func (w *waits) due(id health.EndpointID, at tick) {
	e := w.roster.endpoint(id)
	if e == nil || !e.has(awaitsAbsent|awaitsConfirmation) || e.waitUntil != uint32(at) {
		return
	}
	if e.has(awaitsConfirmation) {
		e.set(isConfirmed)
	}
	e.clear(awaitsAbsent | awaitsConfirmation)
	w.roster.mark(id, e)
}

// confirm returns the status that a tally leads to, or the present one where that
// change has to last first:
//
//   - A majority of down that got no answer does not at once outvote a checker in
//     the endpoint's own zone that says up. If the way to that zone is cut, that
//     shows by the time that everybody has had a round, and that votes may be stale.
//     Where nothing else looks as if it were, the next report of that checker is time
//     enough, whether it comes or is lost.
//   - One voter of several that alone is left to believe does not at once take an
//     endpoint down. If that was noise, it shows.
//   - An endpoint that is down does not come back by the votes of those alone whose
//     probes have begun to fail. That may be all who are believed, while others are
//     doubted.
func (w *waits) confirm(id health.EndpointID, p *policy, e *endpoint, t *tally, to health.Status) health.Status {
	byMajority := p.Kind == Majority || p.Kind == Score
	outvotesZone := byMajority && t.inside && !t.answered
	alone := t.up+t.down == 1 && t.assigned > 1 && p.Kind == Majority
	wavering := byMajority && to.Up() && e.status.Down() && !t.firm
	uncertain := to.Down() && !e.status.Down() && (outvotesZone || alone) || wavering
	if !uncertain || e.has(isConfirmed|budgetSpent) {
		e.clear(awaitsConfirmation | isConfirmed)
		return to
	}
	if !e.has(awaitsConfirmation | awaitsAbsent) {
		d := max(w.settings.staleness(p.class), p.roundTime())
		if outvotesZone && w.records.looksIntact(e) {
			d = min(d, w.presence.untilHeard(e))
		}
		if d <= 0 {
			return to
		}
		w.begin(id, e, awaitsConfirmation, d)
	}
	return e.status
}
