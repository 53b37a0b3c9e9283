package ruling

import (
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
)

// Effects lists the caller's work, in the order of the fields.
type Effects struct {
	// Members lists endpoints that changed, for the aggregator and the planner.
	Members []Member
	// Decisions are for the log.
	Decisions []Decision
	// Unannounced is for Announce, after the aggregator and the planner have applied Members:
	// only then can the aggregator explain the votes.
	Unannounced []Ruled
	// LeftOut is the number of changed verdicts that are not published and recorded, because
	// the endpoint changes too often. The next transition of the endpoint says "n more".
	LeftOut int
}

// Decision is one decision: the change for data planes, and the entry of the log that goes with it.
// It is immutable once returned.
type Decision struct {
	publish.Change
	log.Entry
}

// IsEmpty reports whether the decision has no parts.
func (d *Decision) IsEmpty() bool { return d.Change.IsEmpty() && d.Entry.IsEmpty() }

// Member is an endpoint that is new, changed or gone.
type Member struct {
	ID         health.EndpointID
	Cluster    *catalog.Cluster
	Index      int  // in Cluster.Checked.Endpoints; catalog.None if it is not checked
	WasChecked bool // before the change; only set if Index is None
	New        bool
	Gone       bool

	// Status is the initial verdict of a new endpoint.
	Status health.Status
	Since  time.Time
}

// Ruled is an endpoint that gets another override, or none.
type Ruled struct {
	id             health.EndpointID
	previousHealth health.Status
	previous       *Override       // nil: the votes decided, or it is unknown
	voted          *health.Verdict // nil: ask the aggregator
}

// add adds a decision unless it is empty.
func (e *Effects) add(d Decision) {
	if !d.IsEmpty() {
		e.Decisions = append(e.Decisions, d)
	}
}
