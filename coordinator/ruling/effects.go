package ruling

import (
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/coordinator/decision"
	"hdsd/health"
)

// Effects lists what the caller has to do, in the order of the fields.
type Effects struct {
	// Members lists endpoints that changed, for the aggregator and the planner.
	Members []Member
	// Decisions are to be appended to the log.
	Decisions []decision.Decision
	// Unannounced is to be passed to Announce after the aggregator and the planner have
	// applied Members, since only then can the aggregator explain the votes.
	Unannounced []Ruled
	// LeftOut is how many changes of verdicts are not published and recorded, because the
	// endpoint changes too often. The next transition of the endpoint says "n more".
	LeftOut int
}

// Member is an endpoint that is new, changed or gone.
type Member struct {
	ID         health.EndpointID
	Cluster    *catalog.Cluster
	Index      int  // in Cluster.Checked.Endpoints; catalog.None if it is not checked
	WasChecked bool // before the change; only set if Index is None
	New        bool
	Gone       bool

	// The verdict that a new endpoint starts with.
	Status health.Status
	Since  time.Time
}

// Ruled is an endpoint for which another override decides than before, or none.
type Ruled struct {
	id     health.EndpointID
	from   health.Status
	before *Override       // nil: the votes decided, or it is unknown what did
	voted  *health.Verdict // nil: ask the aggregator
}

// add adds a decision unless it is empty.
func (e *Effects) add(d decision.Decision) {
	if !d.IsEmpty() {
		e.Decisions = append(e.Decisions, d)
	}
}
