package ruling

import (
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/decision"
	"hdsd/health"
)

// Effects lists what the caller has to do, in this order.
type Effects struct {
	// Members are changes of endpoints for the aggregator and the planner, in order.
	Members []Member
	// Decisions are for the log.
	Decisions []decision.Decision
	// Unannounced are for Announce, as soon as the aggregator and the planner have
	// followed Members: until then nobody can explain the votes.
	Unannounced []Ruled
}

// Member is an endpoint that is new, changes or leaves.
type Member struct {
	ID         health.EndpointID
	Cluster    *catalog.Cluster
	Index      int            // in Cluster.Checked.Endpoints; catalog.None if it is not to be checked
	WasChecked bool           // before the change
	New        bool           // its verdict begins as Last
	Gone       bool           // it leaves, and its id rests
	Last       health.Verdict // of the votes
}

// Ruled is an endpoint that another override decides than before, or none.
type Ruled struct {
	id     health.EndpointID
	from   health.Status
	before *Override       // nil: the votes decided, or it is not known what did
	voted  *health.Verdict // nil: the aggregator knows
}

// add appends a decision unless it is empty.
func (e *Effects) add(d decision.Decision) {
	if !d.IsEmpty() {
		e.Decisions = append(e.Decisions, d)
	}
}
