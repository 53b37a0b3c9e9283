package aggregate

// Effects lists everything that a Report or a Tick leads to. Its owner applies
// Changes before ZoneViews, since a view is told in comparison to the verdict;
// the rest in any order. Each list is in the order in which things happened.
type Effects struct {
	Changes      []Change
	Doubts       []DoubtChange
	Blindness    []BlindnessChange
	MassFailures []MassFailure
	ZoneViews    []ZoneView
}

// Empty reports whether there is nothing to do.
func (e *Effects) Empty() bool {
	return len(e.Changes)+len(e.Doubts)+len(e.Blindness)+len(e.MassFailures)+len(e.ZoneViews) == 0
}

// takeEffects hands over what was gathered since the last time.
func (a *Aggregator) takeEffects() (taken Effects) {
	if !a.effects.Empty() {
		taken, a.effects = a.effects, Effects{}
	}
	return taken
}
