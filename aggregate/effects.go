package aggregate

import "hdsd/health"

// Effects lists everything that a Report or a Tick leads to. Its owner applies
// Changes before ZoneViews, since a view differs from the verdict; the rest in
// any order. Each list is in the order in which things happened.
type Effects struct {
	Changes      []Change
	Doubts       []DoubtChange
	Blindness    []BlindnessChange
	MassFailures []MassFailure
	ZoneViews    []ZoneView
}

// Change is a verdict that became another.
type Change struct {
	Endpoint     health.EndpointID
	From, To     health.Status
	Reason       string
	Observations []health.Observation
}

// Empty reports whether there is nothing to do.
func (e *Effects) Empty() bool {
	return len(e.Changes)+len(e.Doubts)+len(e.Blindness)+len(e.MassFailures)+len(e.ZoneViews) == 0
}

// take returns the effects and empties them.
func (e *Effects) take() (taken Effects) {
	if !e.Empty() {
		taken, *e = *e, Effects{}
	}
	return taken
}
