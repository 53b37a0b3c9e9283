package log

import (
	"time"

	"hdsd/health"
)

// Entry is one step of the log. Followers apply its parts in the order of the fields. It is
// immutable once returned.
type Entry struct {
	Freeze      *FreezeChange
	Held        *Freeze // the freeze, if held endpoints moved
	Overrides   []OverrideChange
	Trust       *TrustChange
	Clusters    []string                        // names of new clusters
	Voted       map[health.Hash]*health.Verdict // verdict of the votes under an override
	Transitions []health.Transition
	Unvoted     []health.Hash // endpoints whose Voted is forgotten
	TakenOver   []string      // clusters that data planes stop checking
	Removed     []string      // clusters that hdsd no longer checks, or that no longer have checks of their own
	GivenBack   []string      // clusters that data planes check again

	// A restart takes over these rows.
	Plan        map[string][]health.Hash // endpoints of each changed checker
	Established map[string]*Established  // by checker
	Trials      map[string]*Trials       // by the name of their record
	Penalties   map[health.Hash]*Penalty // by endpoint

	Events []Event // of the history, beside the transitions

	Order    OrderID   // of the operator's order that led to the entry; zero: none
	Operator *Operator // who gave the order; nil: nobody did, or it is unknown
}

// Operator is who gave an order, as the replica that took it has verified.
type Operator struct {
	Identity, Address string
	Time              time.Time // of the order
}

// OrderID identifies an order of an operator among those of all replicas. Entries have it, so the
// replica that took the order sees in the log that the order is carried out.
type OrderID struct {
	Process uint64 // a random number of the process that took the order
	Number  uint64 // of the order, from 1
}

// IsEmpty reports whether the entry has no parts.
func (e *Entry) IsEmpty() bool {
	return e.Freeze == nil && e.Held == nil && e.Trust == nil && e.Order == OrderID{} && e.Operator == nil &&
		len(e.Overrides)+len(e.Clusters)+len(e.Voted)+len(e.Transitions)+len(e.Unvoted)+len(e.TakenOver)+len(e.GivenBack)+len(e.Removed) == 0 &&
		len(e.Plan)+len(e.Established)+len(e.Trials)+len(e.Penalties)+len(e.Events) == 0
}
