package decision

import (
	"time"

	"hdsd/eds"
	"hdsd/health"
	"hdsd/store"
)

// Decision is one entry of the log. Followers apply its parts in the order of the fields. It
// must not be modified once appended.
type Decision struct {
	// For data planes.
	Health    []eds.Health // set before Update, so that a reused id never shows the health of its predecessor
	Update    eds.Update
	Withdrawn []eds.Health // set after Update, when no assignment refers to it any more
	Zones     []ZoneHealth

	// For the history, and to log.
	Freeze      *FreezeChange
	Held        *store.Freeze // the freeze, if what it holds was of endpoints that moved
	Overrides   []OverrideChange
	Trust       *TrustChange
	Clusters    []string                        // names of new clusters
	Voted       map[health.Hash]*health.Verdict // verdict of the votes under an override
	Transitions []health.Transition
	Unvoted     []health.Hash // endpoints whose Voted is to be forgotten
	TakenOver   []string      // clusters that data planes do not check any more
	GivenBack   []string      // clusters that they check again
}

// ZoneHealth changes the health that is published to the data planes of one zone only.
type ZoneHealth struct {
	Zone  health.Locality
	Set   []eds.Health
	Unset []health.EndpointID // now as for all zones
}

// FreezeChange is a freeze that begins, changes or ends.
type FreezeChange struct {
	Before, After *store.Freeze // nil: not frozen
	By            string        // operator who changed it
}

// OverrideChange is an override that begins or ends.
type OverrideChange struct {
	Override store.Override
	Kind     ChangeKind
	By       string // operator who set or cleared it, or the clock
}

// TrustChange is what an operator says of a checker from now on.
type TrustChange struct {
	Checker       string
	Before, After *store.Trust // nil: automatic trust
	By            string       // operator who changed it
}

// ChangeKind is what happens to an override.
type ChangeKind uint8

// What happens to overrides.
const (
	Set ChangeKind = iota
	Cleared
	Expired
)

// IsEmpty reports whether the decision has no parts.
func (d *Decision) IsEmpty() bool {
	return !d.Publishes() && d.Freeze == nil && d.Held == nil && d.Trust == nil && len(d.Overrides)+len(d.Clusters)+len(d.Voted)+len(d.Transitions)+len(d.Unvoted)+len(d.TakenOver)+len(d.GivenBack) == 0
}

// Publishes reports whether data planes get anything.
func (d *Decision) Publishes() bool {
	return len(d.Health)+len(d.Withdrawn)+len(d.Zones) > 0 || d.HasUpdate()
}

// HasUpdate reports whether Update is not empty.
func (d *Decision) HasUpdate() bool {
	u := &d.Update
	return len(u.Assignments)+len(u.RemovedAssignments)+len(u.Clusters)+len(u.RemovedClusters) > 0
}

// Publication is what data planes get.
type Publication uint8

// What data planes get.
const (
	Verdicts Publication = iota // the present verdicts
	Sources                     // what the sources say
	Held                        // the verdicts as they were when the freeze began
)

// String returns the name that events have for it.
func (p Publication) String() string { return [...]string{"PRESENT", "SOURCES", "HELD"}[p] }

// PublicationUnder returns what data planes get under a freeze, which may be nil.
func PublicationUnder(f *store.Freeze) Publication {
	switch {
	case f == nil:
		return Verdicts
	case f.Held == nil:
		return Sources
	}
	return Held
}

// Until returns the end of the override as text; empty if it has none.
func (c *OverrideChange) Until() string {
	if c.Override.Until.IsZero() {
		return ""
	}
	return c.Override.Until.Format(time.RFC3339)
}
