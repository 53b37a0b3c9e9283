package coordinator

import (
	"context"

	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/machine"
)

// sink posts what checkers do to the core. It implements hds.Sink.
type sink struct{ *core }

// Connected implements hds.Sink. It waits until the core knows of the checker, so
// that nothing made for the stream before is sent on the new one.
func (s sink) Connected(k health.Checker) {
	_ = s.ask(context.Background(), machine.Connected{Checker: k}) // the only error is that hdsd stops
}

// Ended implements hds.Sink.
func (s sink) Ended(id string) { s.post(machine.StreamEnded{Checker: id}) }

// Disconnected implements hds.Sink.
func (s sink) Disconnected(id string) {
	s.forgetHeard(id)
	s.post(machine.Disconnected{Checker: id})
}

// Reported implements hds.Sink.
func (s sink) Reported(id string, votes []health.Vote) {
	if len(votes) == 0 {
		s.postHeard(id)
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
