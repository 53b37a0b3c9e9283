package decision

import (
	"time"

	"hdsd/eds"
	"hdsd/health"
	"hdsd/store"
)

// Decision is one entry of the log. Its followers carry its parts out in the order
// of the fields. It does not change once appended.
type Decision struct {
	// For data planes.
	Health    []eds.Health // set before Update: a released id must not show on its successor
	Update    eds.Update
	Withdrawn []eds.Health // set after Update: nothing refers to it any more
	Zones     []ZoneHealth // after all of these

	// For the history.
	Freeze      *FreezeChange
	Overrides   []OverrideChange
	Trust       *TrustChange
	Clusters    []string                        // new ones
	Voted       map[health.Hash]*health.Verdict // what the votes come to under an override
	Transitions []health.Transition
	Unvoted     []health.Hash // endpoints of which Voted is forgotten, after Transitions
}

// ZoneHealth is what the data planes of one zone get that differs from what all
// others get.
type ZoneHealth struct {
	Zone  health.Locality
	Set   []eds.Health
	Unset []health.EndpointID // the same as for all others
}

// FreezeChange is a freeze that begins, changes or ends.
type FreezeChange struct {
	Before, After *store.Freeze // nil: not frozen
	By            string        // who ended it
}

// OverrideChange is an override that begins or ends.
type OverrideChange struct {
	Override store.Override
	Kind     ChangeKind
	By       string // who set or cleared it
}

// TrustChange is what an operator says of a checker from now on.
type TrustChange struct {
	Checker       string
	Before, After *store.Trust // nil: nothing
	By            string
}

// ChangeKind says what happens to an override.
type ChangeKind uint8

// What happens to overrides.
const (
	Set ChangeKind = iota
	Cleared
	Expired
)

// IsEmpty tells whether nobody has anything to do.
func (d *Decision) IsEmpty() bool {
	return !d.Publishes() && d.Freeze == nil && d.Trust == nil && len(d.Overrides)+len(d.Clusters)+len(d.Voted)+len(d.Transitions)+len(d.Unvoted) == 0
}

// Publishes tells whether data planes get anything.
func (d *Decision) Publishes() bool {
	return len(d.Health)+len(d.Withdrawn)+len(d.Zones) > 0 || d.HasUpdate()
}

// HasUpdate tells whether resources change, rather than the health in them.
func (d *Decision) HasUpdate() bool {
	u := &d.Update
	return len(u.Assignments)+len(u.RemovedAssignments)+len(u.Clusters)+len(u.RemovedClusters) > 0
}

// Publication is what data planes get while publishing is frozen or not.
type Publication uint8

// What data planes get.
const (
	Verdicts Publication = iota // the present verdicts
	Sources                     // what the sources say
	Held                        // the verdicts as they were when the freeze began
)

// String is how events name it.
func (p Publication) String() string { return [...]string{"PRESENT", "SOURCES", "HELD"}[p] }

// PublicationUnder says what data planes get under a freeze; nil stands for none.
func PublicationUnder(f *store.Freeze) Publication {
	switch {
	case f == nil:
		return Verdicts
	case f.Held == nil:
		return Sources
	}
	return Held
}

// Until is the end of an override as text; empty where it has none.
func (c *OverrideChange) Until() string {
	if c.Override.Until.IsZero() {
		return ""
	}
	return c.Override.Until.Format(time.RFC3339)
}
