package coordinator

import (
	"maps"
	"slices"

	"hdsd/coordinator/fleet"
	"hdsd/store"
)

// readState reads what is stored while a start does something else. The returned function waits for
// the result.
func readState(from *store.Store) func() (store.State, error) {
	read := make(chan struct{})
	var state store.State
	var err error
	go func() {
		defer close(read)
		state, err = from.State()
	}()
	return func() (store.State, error) {
		<-read
		return state, err
	}
}

// restore takes over what the store has, before the first event. No seat moves until hdsd
// has settled.
func (c *core) restore(s store.State) {
	c.fleet.Restore(s.Plan)
	established := make(map[string]fleet.Established, len(s.Established))
	for id, e := range s.Established {
		established[id] = fleet.Established{Identity: e.Identity, Seen: e.Seen, StandIn: e.StandIn, Founder: e.Founder}
	}
	c.fleet.RestoreEstablished(established)
	for _, name := range slices.Sorted(maps.Keys(s.Trials)) {
		c.rollout.Restore(name, recordOf(s.Trials[name]))
	}
	c.rulings.Restore(s)
	c.upkeep.penalties.past = s.Penalties
	c.decisions.restore(&s)
	for checker, said := range s.Trust {
		c.trust[checker] = said
		c.instruct(checker)
	}
}
