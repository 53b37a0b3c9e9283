package coordinator

import (
	"context"

	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/machine"
)

// sink implements hds.Sink. It posts the events of checkers to the core.
type sink struct{ *core }

// Connected implements hds.Sink. It waits until the core has handled the event, so that no specifier for the
// previous stream goes to the new one.
func (s sink) Connected(k health.Checker) {
	_ = s.call(context.Background(), machine.Connected{Checker: k}) // fails only when hdsd stops
}

// Ended implements hds.Sink.
func (s sink) Ended(id string) { s.post(machine.StreamEnded{Checker: id}) }

// Disconnected implements hds.Sink.
func (s sink) Disconnected(id string) {
	s.forgetEmptyReport(id)
	s.post(machine.Disconnected{Checker: id})
}

// Reported implements hds.Sink.
func (s sink) Reported(id string, votes []health.Vote) {
	if len(votes) == 0 {
		s.postEmptyReport(id)
		return
	}
	s.post(machine.Reported{Checker: id, Votes: votes})
}

// Silent implements hds.Sink.
func (s sink) Silent(id string, silent bool) { s.post(machine.Silenced{Checker: id, Silent: silent}) }

// Accepted implements hds.Sink.
func (s sink) Accepted(id string, spec *specifier.Specifier) {
	s.post(machine.Followed{Checker: id, Specifier: spec})
}
