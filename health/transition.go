package health

import (
	"strings"
	"time"
)

// Observation is the latest vote of one checker on one endpoint, as users see it.
type Observation struct {
	Checker        string
	Status         Status
	HTTPStatusCode uint16 // 0 without one
	Time           time.Time
	Disbelieved    string // reason why the vote did not count; empty if it did
}

// Reasons why a vote does not count because its checker does not see the endpoint at the time.
// ForTooLong may follow each.
const (
	FirstReportAwaited = "first report awaited"
	WarmingUp          = "warming up"
	NextReportAwaited  = "next report awaited"
	NotReported        = "does not report it"
	NotHeard           = "not heard lately"

	ForTooLong = " for too long"
)

// IsOpinion reports whether a vote is its checker's present view, so that the checker may be
// wrong. It takes the reason why the vote does not count, empty if it counts.
func IsOpinion(disbelieved string) bool {
	switch strings.TrimSuffix(disbelieved, ForTooLong) {
	case FirstReportAwaited, WarmingUp, NextReportAwaited, NotReported, NotHeard:
		return false
	}
	return true
}

// Vote is one checker's report of one endpoint.
type Vote struct {
	Endpoint       EndpointID
	Status         Status
	HTTPStatusCode uint16 // 0 without one
}

// Verdict is the health of an endpoint by its votes.
type Verdict struct {
	Status       Status
	Since        time.Time // zero before the first verdict
	Reason       string
	Observations []Observation
	Zones        []ZoneVerdict // the views of each zone's checkers
}

// ZoneVerdict is the view of one zone's checkers on an endpoint.
type ZoneVerdict struct {
	Region, Zone string // of the checkers; empty without a zone
	Status       Status // UNKNOWN without votes, or with as many up as down
	Up, Down     int    // votes
}

// Transition is a change of an endpoint's verdict.
//
// An endpoint of which only the locality changes has two, one behind the other: the first to
// UNKNOWN where it was, the second from UNKNOWN where it is now.
type Transition struct {
	Time         time.Time
	Endpoint     Endpoint
	From, To     Status
	Reason       string
	Observations []Observation
	Moved        *Locality // the other locality of a move; nil: it is none
}
