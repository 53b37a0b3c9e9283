package aggregate

import (
	"time"

	"hdsd/health"
)

// waits delays changes: until absent checkers have had time to report, or until a
// change has lasted. A new wait replaces the old one.
type waits struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	presence  *presence
	records   *records
	divisions *divisions
}

// awaitAbsent waits for the absent checkers of an endpoint. After a time in which no
// checker was heard, the first to come back must not decide alone.
func (w *waits) awaitAbsent(id health.EndpointID, e *endpoint) {
	w.begin(id, e, awaitsAbsent, w.settings.awaitFor())
}

func (w *waits) begin(id health.EndpointID, e *endpoint, wait flags, d time.Duration) {
	t := w.clock.tickAfter(d)
	e.clear(awaitsAbsent | awaitsConfirmation | awaitsName)
	e.set(wait)
	e.waitUntil = uint32(t)
	w.deadlines.add(t, deadline{id, noChecker})
}

// due ends the wait of an endpoint, if t is its current deadline.
func (w *waits) due(id health.EndpointID, t tick) {
	e := w.roster.endpoint(id)
	if e == nil || !e.has(awaitsAbsent|awaitsConfirmation|awaitsName) || e.waitUntil != uint32(t) {
		return
	}
	if e.has(awaitsConfirmation | awaitsName) {
		e.set(isConfirmed)
	}
	e.clear(awaitsAbsent | awaitsConfirmation | awaitsName)
	w.roster.mark(id, e)
}

// confirm returns the status given by a tally, or the present status while that change must
// last first:
//
//   - A majority of down that gets no answer does not at once outvote an up from the
//     endpoint's own zone. If the path to that zone is cut, that becomes clear after
//     a round or the staleness, whichever is longer. If nothing else suggests a cut,
//     the wait ends when the zone's checkers must have reported once more.
//     If one checker has held the doubt of that path for as long as it may, nothing waits.
//   - Votes over a cut path with which the zone's own checkers agree do not decide at
//     once, either.
//   - The only believed voter of several does not at once take an endpoint down. If
//     its vote was noise, that becomes clear meanwhile.
//   - An endpoint does not at once come back up if all believed ups are from checkers
//     whose probes have begun to fail. While others are doubted, these may be the
//     only believed votes.
//   - A verdict that stays down keeps its name, UNHEALTHY or TIMEOUT, until the other has lasted
//     for renameRounds. For a hanging gRPC service, the side that ends the call first determines
//     the name, and both may alternate for ever. That wait costs no budget, as it keeps no
//     traffic anywhere.
func (w *waits) confirm(id health.EndpointID, p *policy, e *endpoint, t *tally, status health.Status) health.Status {
	if status.Down() && e.status.Down() && status != e.status {
		return w.rename(id, p, e, status)
	}
	e.clear(awaitsName)
	byMajority := p.Kind == Majority || p.Kind == Score
	outvotesZone := byMajority && t.inside && !t.answered && !w.divisions.spent(e, p.class)
	dividedZone := byMajority && t.leansOnCut()
	alone := t.up+t.down == 1 && t.assigned > 1 && p.Kind == Majority
	wavering := byMajority && status.Up() && e.status.Down() && !t.firm
	uncertain := status.Down() && !e.status.Down() && (outvotesZone || dividedZone || alone) || wavering
	if !uncertain || e.has(isConfirmed|budgetSpent) {
		e.clear(awaitsConfirmation | isConfirmed)
		return status
	}
	if !e.has(awaitsConfirmation | awaitsAbsent) {
		d := max(w.settings.staleness(p.class), p.roundTime())
		if outvotesZone && !t.muted && w.records.looksIntact(e) {
			d = min(d, w.presence.untilHeard(e))
		}
		if d <= 0 {
			return status
		}
		w.begin(id, e, awaitsConfirmation, d)
	}
	return e.status
}

// renameRounds is the number of rounds for which a verdict that stays down keeps its name.
const renameRounds = 10

// rename returns the other name of a verdict that stays down once it has lasted, and the
// present one until then.
func (w *waits) rename(id health.EndpointID, p *policy, e *endpoint, status health.Status) health.Status {
	if e.has(isConfirmed) {
		e.clear(awaitsConfirmation | awaitsName | isConfirmed)
		return status
	}
	if !e.has(awaitsAbsent | awaitsName) {
		w.begin(id, e, awaitsName, renameRounds*p.roundTime())
	}
	return e.status
}
