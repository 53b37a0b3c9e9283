package decision

import (
	"time"

	"hdsd/health"
	"hdsd/publish"
	"hdsd/store"
)

// Decision is one decision. Observers apply its parts in the order of the fields. It is
// immutable once returned.
type Decision struct {
	// These fields are for data planes.
	Health    []publish.Health // set before Update, so that a reused id never shows the health of its predecessor
	Update    publish.Update
	Withdrawn []publish.Health // set after Update, when no assignment refers to it any more
	Zones     []ZoneHealth

	// These fields are for the history and the log.
	Freeze      *FreezeChange
	Held        *store.Freeze // the freeze, if held endpoints moved
	Overrides   []OverrideChange
	Trust       *TrustChange
	Clusters    []string                        // names of new clusters
	Voted       map[health.Hash]*health.Verdict // verdict of the votes under an override
	Transitions []health.Transition
	Unvoted     []health.Hash // endpoints whose Voted is forgotten
	TakenOver   []string      // clusters that data planes stop checking
	GivenBack   []string      // clusters that they check again
}

// ZoneHealth changes the health published to the data planes of one zone only.
type ZoneHealth struct {
	Zone  health.Locality
	Set   []publish.Health
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

// TrustChange is an operator's new trust in a checker.
type TrustChange struct {
	Checker       string
	Before, After *store.Trust // nil: automatic trust
	By            string       // operator who changed it
}

// ChangeKind is the kind of a change of an override.
type ChangeKind uint8

// These are the kinds of changes of overrides.
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

// Publication is the origin of the health that data planes get.
type Publication uint8

// These are the publications.
const (
	Verdicts Publication = iota // the present verdicts
	Sources                     // the health from the sources
	Held                        // the verdicts at the beginning of the freeze
)

// String returns its name in events.
func (p Publication) String() string { return [...]string{"PRESENT", "SOURCES", "HELD"}[p] }

// PublicationUnder returns the publication under a freeze, which may be nil.
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
