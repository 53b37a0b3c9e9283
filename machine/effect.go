package machine

import (
	"time"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
	"hdsd/rollout"
)

// Effect is a result of a step. It is valid until yield returns, and must not be modified.
type Effect interface{ isEffect() }

// These effects are about checkers.
type (
	// SpecifierMade carries a new specifier for a checker.
	SpecifierMade struct {
		Checker   string
		Specifier *specifier.Specifier
	}
	// CheckerJoined carries a checker that has connected.
	CheckerJoined struct{ Checker health.Checker }
	// FleetChanged carries changes of checkers and of the plan.
	FleetChanged struct{ *fleet.Effects }
)

// These effects are about health and trials.
type (
	// Published carries a change for data planes.
	Published struct{ *publish.Change }
	// Logged carries an entry of the log. It follows the change for data planes that it explains.
	Logged struct{ *log.Entry }
	// VotesJudged carries the findings about votes: doubts, blind checkers, mass failures and divided zones.
	VotesJudged struct{ *aggregate.Effects }
	// TrialsChanged carries changes of trials.
	TrialsChanged struct{ rollout.Effects }
	// ChangesLeftOut counts changes of verdicts that are not published, because their endpoints change too often.
	ChangesLeftOut struct{ Count int }
)

// These effects are about the clusters of sources.
type (
	// ClustersChanged precedes the decisions about a change of the clusters.
	ClustersChanged struct {
		Removed    []string
		Changed    []*catalog.Cluster
		Previous   map[string]*catalog.Cluster // previous versions; a new cluster has none
		Conclusive bool                        // the sources are complete: a cluster without a previous version is new
	}
	// ClustersApplied follows the decisions about a change of the clusters.
	ClustersApplied struct {
		Removed              []string
		Changed              []*catalog.Cluster
		InitialHealthChanged bool // the initial health has changed, for all clusters
		NothingChecked       bool // the change leaves no checked endpoint
		PreviouslyChecked    int  // number of endpoints before the change
	}
	// EndpointsChanged names a cluster with changed endpoints.
	EndpointsChanged struct{ Cluster string }
	// SourcesAnswered reports that each source has answered, or that hdsd has given it up.
	SourcesAnswered struct{}
)

// These effects are about the store and the time.
type (
	// ForgetDue asks the store to forget all endpoints outside of Rulings.
	ForgetDue struct{}
	// PauseEnded reports the end of a time in which hdsd did nothing.
	PauseEnded struct{ Duration time.Duration }
	// TickHandled ends a tick, unless hdsd only listens.
	TickHandled struct{}
)

func (SpecifierMade) isEffect()    {}
func (CheckerJoined) isEffect()    {}
func (FleetChanged) isEffect()     {}
func (Published) isEffect()        {}
func (Logged) isEffect()           {}
func (VotesJudged) isEffect()      {}
func (TrialsChanged) isEffect()    {}
func (ChangesLeftOut) isEffect()   {}
func (ClustersChanged) isEffect()  {}
func (ClustersApplied) isEffect()  {}
func (EndpointsChanged) isEffect() {}
func (SourcesAnswered) isEffect()  {}
func (ForgetDue) isEffect()        {}
func (PauseEnded) isEffect()       {}
func (TickHandled) isEffect()      {}
