package coordinator

import (
	"maps"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/fleet"
	"hdsd/machine"
	"hdsd/store"
)

// What the lab shares with the tests of checkers: what hds and operators say of
// them, and what can be asked.

// replan lets the time go by that is between two plans for checkers that come and go.
func (l *lab) replan() {
	l.now = l.now.Add(100 * time.Millisecond)
	l.step(machine.Tick{})
}

// setSilent says what hds says of checkers that report nothing, or report again.
func (l *lab) setSilent(silent bool, ids ...string) {
	for _, id := range ids {
		l.step(machine.Silenced{Checker: id, Silent: silent})
	}
}

// silenceReason says why a checker is silent; empty where it is not.
func (l *lab) silenceReason(id string) string { return l.core.Fleet.SilenceReason(id) }

// trustAgain ends what ann says of checkers.
func (l *lab) trustAgain(ids ...string) {
	for _, id := range ids {
		l.clearTrust(id, "ann")
	}
}

// isDoubted reports whether a checker is doubted or distrusted.
func (l *lab) isDoubted(id string) bool {
	return l.core.Trust[id].Level == store.Distrusted || l.core.Aggregator.DoubtReason(id) != ""
}

// members are the checkers that are connected or whose seats are kept.
func (l *lab) members() []string {
	var ids []string
	for k := range l.core.Fleet.Checkers() {
		ids = append(ids, k.ID)
	}
	slices.Sort(ids)
	return ids
}

// isMember reports whether a checker is connected or its seats are kept.
func (l *lab) isMember(id string) bool { return slices.Contains(l.members(), id) }

// part is the part of a checker in the plan.
func (l *lab) part(id string) assign.Checker { return l.core.Fleet.Part(id) }

// load is how many endpoints a checker has to check by the plan.
func (l *lab) load(id string) int { return l.part(id).Endpoints }

// digest stands for the whole plan.
func (l *lab) digest() uint64 { return l.core.Fleet.Digest() }

// figures are those of the fleet.
func (l *lab) figures() fleet.Figures { return l.core.Fleet.Figures() }

// away is how many checkers are not connected and have their seats kept.
func (l *lab) away() int { return l.figures().Seated - l.figures().Connected }

// beyond counts the checkers that addresses have beyond a redundancy.
func (l *lab) beyond(redundancy int, addresses []string) (extra int) {
	for _, address := range addresses {
		extra += max(0, len(l.checking(address))-redundancy)
	}
	return extra
}

// behind are the checkers that were not sent all of their plan.
func (l *lab) behind() []string { return slices.Sorted(maps.Keys(view{l.core}.Lagging())) }
