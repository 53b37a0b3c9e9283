package aggregate

import (
	"time"

	"hdsd/health"
)

// waits makes endpoints wait: for absent checkers, or until a change has lasted. One
// wait replaces the other.
type waits struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	presence  *presence
	records   *records
}

// awaitAbsent awaits the absent checkers of an endpoint. After a time in which none
// was heard, the first to come back must not decide alone.
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
//     the endpoint's own zone that says up. If the way to that zone is cut, that shows
//     after a round and the staleness. Where nothing else points to a cut, it is enough
//     to wait for that checker's next report, whether it comes or is lost.
//   - The only believed voter of several does not at once take an endpoint down. If its
//     vote was noise, that shows.
//   - An endpoint that is down does not come back by the votes of checkers alone whose
//     probes have begun to fail. These may be all that are believed, while others are
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
