package log

import (
	"time"

	"hdsd/health"
)

// State is what the log has come to at one moment, besides the history. A start takes it over.
type State struct {
	Current   map[health.Hash]Health         // last known health, by endpoint
	Plan      map[string][]health.Hash       // sorted endpoints, by checker
	Clusters  []string                       // every cluster ever known, sorted
	Freeze    *Freeze                        // nil unless publishing is frozen
	Overrides []Override                     // in no order, expired ones included
	Voted     map[health.Hash]health.Verdict // verdict by votes, by endpoint: all under an override, maybe others
	Trust     map[string]Trust               // by checker
	Trials    map[string]*Trials             // by cluster

	Established map[string]Established  // checkers that are not on probation
	Penalties   map[health.Hash]Penalty // of damped endpoints that went down lately
	GivenBack   map[string]bool         // names of clusters that data planes check again
	Attendance  Attendance              // of checkers, by the events
}

// Health is the last known health of an endpoint. It has no observations, because a start reads
// all endpoints.
type Health struct {
	Endpoint health.Endpoint
	Status   health.Status
	Since    time.Time // zero before the first verdict
	Reason   string
}

// Attendance is the latest connection or loss of each checker, by its id.
type Attendance map[string]LastSeen

// LastSeen says when a checker was lost.
type LastSeen struct {
	Locality health.Locality
	Lost     time.Time // zero while connected
}
