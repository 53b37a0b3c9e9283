package machine

import (
	"maps"
	"slices"

	"hdsd/fleet"
	"hdsd/log"
)

// Restore takes over the stored state, before the first event. No seat moves until hdsd has settled.
func (m *Machine) Restore(s *log.State) {
	m.Fleet.Restore(s.Plan)
	established := make(map[string]fleet.Established, len(s.Established))
	for id, e := range s.Established {
		established[id] = fleet.Established{Identity: e.Identity, Seen: e.Seen, StandIn: e.StandIn, Founder: e.Founder}
	}
	m.Fleet.RestoreEstablished(established)
	for _, name := range slices.Sorted(maps.Keys(s.Trials)) {
		m.Rollout.Restore(trialRecord(s.Trials[name]))
	}
	m.Rulings.Restore(*s)
	m.penalties.restored = s.Penalties
	m.Troubles.restore(s)
	for checker, trust := range s.Trust {
		m.Trust[checker] = trust
		m.setAggregatorTrust(checker)
	}
}
