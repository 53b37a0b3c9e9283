package aggregate

import "hdsd/health"

// Effects lists everything that follows from a Report or a Tick. Its owner applies
// Changes before ZoneViews, since a view differs from the verdict, and the rest in
// any order. Each list is in the order of events.
type Effects struct {
	Changes      []Change
	Doubts       []DoubtChange
	Blindness    []BlindnessChange
	MassFailures []MassFailure
	ZoneViews    []ZoneView
}

// Change reports that a verdict changed.
type Change struct {
	Endpoint     health.EndpointID
	From, To     health.Status
	Reason       string
	Observations []health.Observation
}

// Empty reports whether there are no effects.
func (e *Effects) Empty() bool {
	return len(e.Changes)+len(e.Doubts)+len(e.Blindness)+len(e.MassFailures)+len(e.ZoneViews) == 0
}

// take returns the effects and clears them.
func (e *Effects) take() (taken Effects) {
	if !e.Empty() {
		taken, *e = *e, Effects{}
	}
	return taken
}
