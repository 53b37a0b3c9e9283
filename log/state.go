package log

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// State is the sum of the entries up to one moment, without the history. A start takes it over.
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
	TakenOver   map[string]bool         // names of clusters with own checks that data planes leave to hdsd; nil: unknown
	Attendance  Attendance              // of checkers, by their events
}

// IsEmpty reports whether there is nothing that a fleet would have to know.
func (s *State) IsEmpty() bool {
	return len(s.Current)+len(s.Plan)+len(s.Clusters)+len(s.Overrides)+len(s.Voted)+len(s.Trust)+len(s.Trials)+len(s.Established)+len(s.Penalties) == 0 && s.Freeze == nil
}

// Clone returns a copy with maps and lists of its own.
func (s *State) Clone() State {
	c := *s
	c.Current, c.Plan, c.Clusters, c.Overrides = maps.Clone(s.Current), maps.Clone(s.Plan), slices.Clone(s.Clusters), slices.Clone(s.Overrides)
	c.Voted, c.Trust, c.Trials, c.Established = maps.Clone(s.Voted), maps.Clone(s.Trust), maps.Clone(s.Trials), maps.Clone(s.Established)
	c.Penalties, c.GivenBack, c.Attendance = maps.Clone(s.Penalties), maps.Clone(s.GivenBack), maps.Clone(s.Attendance)
	c.TakenOver = maps.Clone(s.TakenOver)
	return c
}

// Health is the last known health of an endpoint. It has no observations, because a start reads
// all endpoints.
type Health struct {
	Endpoint health.Endpoint
	Status   health.Status
	Since    time.Time // zero before the first verdict
	Reason   string
}
