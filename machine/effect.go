package machine

import (
	"time"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/rollout"
	"hdsd/ruling/decision"
	"hdsd/store"
)

// Effect is what a step decided or found. It is valid until yield returns, and must not be modified.
type Effect interface{ isEffect() }

// What checkers are told, and what happens to them.
type (
	// Specified is a specifier to send.
	Specified struct {
		Checker   string
		Specifier *specifier.Specifier
	}
	// Joined is a checker that has connected.
	Joined struct{ Checker health.Checker }
	// FleetChanged is what happened to checkers, and to the plan.
	FleetChanged struct{ *fleet.Effects }
)

// What data planes are told, and what becomes of trials.
type (
	// Decided is a decision for data planes and the history.
	Decided struct{ *decision.Decision }
	// Judged is what the votes come to beside verdicts.
	Judged struct{ *aggregate.Effects }
	// TrialsChanged is what became of trials.
	TrialsChanged struct{ rollout.Effects }
	// LeftOut is how many changes of verdicts are left out, since their endpoints change too often.
	LeftOut struct{ Count int }
)

// What sources change.
type (
	// ClustersChanged comes before the decisions that follow from it.
	ClustersChanged struct {
		Removed    []string
		Changed    []*catalog.Cluster
		Before     map[string]*catalog.Cluster // as they were; without those that are new
		Conclusive bool                        // those that were not there before are new
	}
	// ClustersApplied comes after the decisions.
	ClustersApplied struct {
		Removed        []string
		Changed        []*catalog.Cluster
		InitialHealth  bool // that has changed, which concerns all clusters
		CheckedNothing bool // no endpoint is checked any more
		CheckedBefore  int  // endpoints
	}
	// EndpointsChanged names a cluster of which endpoints changed.
	EndpointsChanged struct{ Cluster string }
	// SourcesAnswered says that every source has answered, or was given up.
	SourcesAnswered struct{}
)

// What else is to be stored or forgotten, and what time did.
type (
	// PenaltiesChanged has what damping holds against endpoints, to store; nil removes a row.
	PenaltiesChanged struct {
		Changed map[health.Hash]*store.Penalty
	}
	// Forgettable says that the store may forget all endpoints that are not in Rulings.
	Forgettable struct{}
	// Paused says that hdsd did nothing for a while.
	Paused struct{ Lasted time.Duration }
	// Ticked comes last in a tick, unless hdsd only listens.
	Ticked struct{}
)

func (Specified) isEffect()        {}
func (Joined) isEffect()           {}
func (FleetChanged) isEffect()     {}
func (Decided) isEffect()          {}
func (Judged) isEffect()           {}
func (TrialsChanged) isEffect()    {}
func (LeftOut) isEffect()          {}
func (ClustersChanged) isEffect()  {}
func (ClustersApplied) isEffect()  {}
func (EndpointsChanged) isEffect() {}
func (SourcesAnswered) isEffect()  {}
func (PenaltiesChanged) isEffect() {}
func (Forgettable) isEffect()      {}
func (Paused) isEffect()           {}
func (Ticked) isEffect()           {}
