package aggregate

import (
	"time"

	"hdsd/health"
)

// Effects lists all results of a Report or a Tick. Its owner applies Changes before ZoneViews,
// since a view differs from the verdict, and the rest in any order. Each list is in the order
// of events.
type Effects struct {
	Changes      []Change
	Doubts       []DoubtChange
	Blindness    []BlindnessChange
	MassFailures []MassFailure
	ZoneViews    []ZoneView
	Divided      []DividedChange
	Penalties    []PenaltyChange
	Crossed      []string // clusters that gained their first or lost their last endpoint with a vote that counts
}

// PenaltyChange reports that a damped endpoint went down, or that its penalty is
// forgotten. Nothing reports that a penalty halves.
type PenaltyChange struct {
	Endpoint health.EndpointID
	Penalty  Penalty
	Over     bool // it is forgotten
}

// Penalty is the penalty of a damped endpoint.
type Penalty struct {
	Value      float64 // at time At
	At         time.Time
	Suppressed bool // from Damping.Suppress until it is below Damping.Reuse
}

// DividedChange reports that many votes from elsewhere on a zone's endpoints are
// contradicted by the zone's own checkers, or no longer are. Either the way there is
// cut or checkers lie. Meanwhile, each endpoint of the zone should have two checkers
// of its own zone.
type DividedChange struct {
	Zone health.Locality // region and zone
	Over bool
}

// Change reports that a verdict changed.
type Change struct {
	Endpoint     health.EndpointID
	From, To     health.Status
	FromSince    time.Time // when From became the verdict; zero if there was none
	Reason       string
	Observations []health.Observation
}

// Empty reports whether there are no effects.
func (e *Effects) Empty() bool {
	return len(e.Changes)+len(e.Doubts)+len(e.Blindness)+len(e.MassFailures)+len(e.ZoneViews)+len(e.Divided)+len(e.Penalties)+len(e.Crossed) == 0
}

// drain returns the effects and clears them.
func (e *Effects) drain() (drained Effects) {
	if !e.Empty() {
		drained, *e = *e, Effects{}
	}
	return drained
}
