package coordinator

import (
	"maps"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/fleet"
	"hdsd/log"
	"hdsd/machine"
)

// These methods of the lab are for tests of checkers.

// replan lets the time between two plans pass.
func (l *lab) replan() {
	l.now = l.now.Add(100 * time.Millisecond)
	l.step(machine.Tick{})
}

// setSilent makes checkers silent, or ends their silence.
func (l *lab) setSilent(silent bool, ids ...string) {
	for _, id := range ids {
		l.step(machine.Silenced{Checker: id, Silent: silent})
	}
}

// silenceReason returns the reason of the silence of a checker; empty without one.
func (l *lab) silenceReason(id string) string { return l.core.Fleet.SilenceReason(id) }

// clearTrustOf returns checkers to automatic trust, as ann.
func (l *lab) clearTrustOf(ids ...string) {
	for _, id := range ids {
		l.clearTrust(id, "ann")
	}
}

// isDoubted reports whether a checker is doubted or distrusted.
func (l *lab) isDoubted(id string) bool {
	return l.core.Trust[id].Level == log.Distrusted || l.core.Aggregator.DoubtReason(id) != ""
}

// members returns the connected checkers and the lost ones with seats.
func (l *lab) members() []string {
	var ids []string
	for k := range l.core.Fleet.Checkers() {
		ids = append(ids, k.ID)
	}
	slices.Sort(ids)
	return ids
}

// isMember reports whether a checker is connected, or lost with seats.
func (l *lab) isMember(id string) bool { return slices.Contains(l.members(), id) }

// planOf returns the part of a checker in the plan.
func (l *lab) planOf(id string) assign.Checker { return l.core.Fleet.Part(id) }

// load returns the number of endpoints of a checker in the plan.
func (l *lab) load(id string) int { return l.planOf(id).Endpoints }

// digest returns the digest of the plan.
func (l *lab) digest() uint64 { return l.core.Fleet.Digest() }

// figures returns the figures of the fleet.
func (l *lab) figures() fleet.Figures { return l.core.Fleet.Figures() }

// lostCount returns the number of lost checkers with seats.
func (l *lab) lostCount() int { return l.figures().Seated - l.figures().Connected }

// extraCheckers counts the checkers of addresses beyond a redundancy.
func (l *lab) extraCheckers(redundancy int, addresses []string) (extra int) {
	for _, address := range addresses {
		extra += max(0, len(l.checkersOf(address))-redundancy)
	}
	return extra
}

// laggingCheckers returns the checkers without a part of their plan.
func (l *lab) laggingCheckers() []string { return slices.Sorted(maps.Keys(view{l.core}.Lagging())) }
