package machine

import (
	"maps"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
	"hdsd/ruling"
)

// Follower publishes the decisions of another Machine, by the entries of the log, for the clusters that
// its own sources have. Its State is what a Machine restores to go on deciding. Entries have no views of
// zones, so it publishes none.
type Follower struct {
	State   log.State
	Rulings *ruling.Table // published health, overrides, freezes

	rules *catalog.Rules
}

// NewFollower returns a Follower with the stored state, which it owns from then on.
func NewFollower(s log.State) *Follower {
	maps.DeleteFunc(s.Current, func(_ health.Hash, held log.Health) bool { return ruling.IsGone(held.Status, held.Reason) })
	f := &Follower{State: s}
	f.Rulings = ruling.New(func(id health.EndpointID) health.Verdict {
		return health.Verdict{Status: f.Rulings.Ruling(id).Health, Reason: "another replica decides"}
	})
	ruling.RestoreFollower(f.Rulings, s.Clone())
	return f
}

// Deliver applies a change of the clusters. It yields ClustersChanged, the changes for data planes, and
// ClustersApplied, as a Machine does.
func (f *Follower) Deliver(now time.Time, d *catalog.Delivery, yield func(Effect)) {
	before := f.Rulings.Len()
	initialChanged := f.rules != nil && f.rules.InitialHealth != d.Rules.InitialHealth
	f.rules = d.Rules
	change := ruling.Change{InitialHealth: d.Rules.InitialHealth, Removed: d.Removed, Answered: d.Answered, Complete: d.Complete}
	for _, changed := range d.Changed {
		change.Changed = append(change.Changed, changed.Cluster)
	}
	yield(announceClusters(f.Rulings, &change))
	effects := f.Rulings.Apply(now, change)
	announced := f.Rulings.Announce(now, effects.Unannounced)
	for _, decisions := range [][]ruling.Decision{effects.Decisions, announced.Decisions} {
		for _, c := range ruling.Changes(decisions) {
			yield(Published{&c})
		}
	}
	yield(ClustersApplied{
		Removed: d.Removed, Changed: change.Changed, InitialHealthChanged: initialChanged,
		PreviouslyChecked: before, NothingChecked: before > 0 && f.Rulings.Len() == 0,
	})
}

// Follow applies the next entry of the log, and returns the changes for data planes.
func (f *Follower) Follow(now time.Time, e *log.Entry) []publish.Change {
	f.State.Apply(e)
	for i := range e.Transitions {
		if t := &e.Transitions[i]; ruling.IsGone(t.To, t.Reason) {
			delete(f.State.Current, t.Endpoint.Hash())
		}
	}
	return ruling.Follow(f.Rulings, now, e)
}

// View returns a Machine to read. It has the health of the Follower, and no checkers and votes.
func (f *Follower) View(t Timing) *Machine {
	m := New(t)
	m.Rulings, m.Trust, m.Rules = f.Rulings, f.State.Trust, f.rules
	if m.Rules == nil {
		m.Rules = &catalog.Rules{}
	}
	return m
}

// FollowOrder is Follow for the first entry of an order of an operator, and sets the results of the order as the
// Machine does that has carried it out.
func (f *Follower) FollowOrder(now time.Time, e *log.Entry, order Event) []publish.Change {
	frozen := f.Rulings.Frozen()
	changes := f.Follow(now, e)
	switch o := order.(type) {
	case *SetOverride:
		f.answerOverride(o, e)
	case *ClearOverrides:
		for i := range e.Overrides {
			o.Ended = append(o.Ended, ruling.Override{Override: e.Overrides[i].Override})
		}
	case *Freeze:
		if o.Before, o.After = frozen, frozen; e.Freeze != nil {
			o.Before, o.After = e.Freeze.Before, e.Freeze.After
		}
	case *Unfreeze:
		if e.Freeze != nil {
			o.Before = e.Freeze.Before
		}
	case *SetTrust:
		if e.Trust != nil && e.Trust.After != nil {
			o.Change, o.Trust = *e.Trust, *e.Trust.After
		}
	case *ClearTrust:
		if e.Trust != nil {
			o.Change, o.Changed = *e.Trust, true
		}
	}
	return changes
}

// answerOverride sets the results of an override. An equal one, which stays, replaces itself.
func (f *Follower) answerOverride(o *SetOverride, e *log.Entry) {
	for _, present := range f.Rulings.Overrides() {
		if present.Scope == o.Override.Scope {
			o.Applied = present
		}
	}
	switch {
	case len(e.Overrides) == 0:
		unchanged := o.Applied
		o.Replaced = &unchanged
	case e.Overrides[0].Replaced != nil:
		o.Replaced = &ruling.Override{Override: *e.Overrides[0].Replaced}
	}
}
