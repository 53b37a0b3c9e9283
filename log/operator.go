package log

import (
	"time"

	"hdsd/health"
)

// Freeze is a stop to publishing verdicts.
type Freeze struct {
	Reason, Author string
	Since          time.Time

	// Held is the health that stays published; nil: the health of the sources.
	Held map[health.Hash]health.Status
}

// FreezeChange is a freeze that begins, changes or ends.
type FreezeChange struct {
	Before, After *Freeze // nil: not frozen
	By            string  // operator who changed it
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

// Publication returns the origin of the health that data planes get under a freeze, which may be
// nil.
func (f *Freeze) Publication() Publication {
	switch {
	case f == nil:
		return Verdicts
	case f.Held == nil:
		return Sources
	}
	return Held
}

// Override is an operator's replacement of the verdicts in a scope.
type Override struct {
	Scope          health.Endpoint // an empty field matches any value
	Status         health.Status
	Reason, Author string
	Since          time.Time
	Until          time.Time // zero: until an operator clears it
}

// OverrideChange is an override that begins or ends.
type OverrideChange struct {
	Override Override
	Replaced *Override // with the same scope, by one of kind Set; nil: there was none
	Kind     ChangeKind
	By       string // operator who set or cleared it, or the clock
}

// ChangeKind is the kind of a change of an override.
type ChangeKind uint8

// These are the kinds of changes of overrides.
const (
	Set ChangeKind = iota
	Cleared
	Expired
)

// Until returns the end of the override as text; empty if it has none.
func (c *OverrideChange) Until() string {
	if c.Override.Until.IsZero() {
		return ""
	}
	return c.Override.Until.Format(time.RFC3339)
}

// TrustLevel is an operator's trust in a checker.
type TrustLevel uint8

// The levels.
const (
	Unspecified TrustLevel = iota
	Distrusted
	Trusted
)

// Trust is an operator's trust in a checker, and the reason.
type Trust struct {
	Level          TrustLevel
	Reason, Author string
	Since          time.Time
}

// TrustChange is an operator's new trust in a checker.
type TrustChange struct {
	Checker       string
	Before, After *Trust // nil: automatic trust
	By            string // operator who changed it
}
