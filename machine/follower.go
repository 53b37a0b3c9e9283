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

// Deliver applies a change of the clusters, and returns the changes for data planes.
func (f *Follower) Deliver(now time.Time, d *catalog.Delivery) []publish.Change {
	change := ruling.Change{InitialHealth: d.Rules.InitialHealth, Removed: d.Removed, Answered: d.Answered, Complete: d.Complete}
	for _, changed := range d.Changed {
		change.Changed = append(change.Changed, changed.Cluster)
	}
	effects := f.Rulings.Apply(now, change)
	announced := f.Rulings.Announce(now, effects.Unannounced)
	return append(ruling.Changes(effects.Decisions), ruling.Changes(announced.Decisions)...)
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
