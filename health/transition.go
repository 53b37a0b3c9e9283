package health

import (
	"strings"
	"time"
)

// Observation is the latest vote of one checker on one endpoint, as users see it.
type Observation struct {
	Checker        string
	Status         Status
	HTTPStatusCode uint16 // 0 where there was none
	Time           time.Time
	Disbelieved    string // why the vote did not count; empty where it did
}

// Reasons why a vote does not count, which say that it is not what its checker sees at the time.
// ForTooLong may follow them.
const (
	FirstReportAwaited = "first report awaited"
	WarmingUp          = "warming up"
	NextReportAwaited  = "next report awaited"
	NotReported        = "does not report it"
	NotHeard           = "not heard lately"

	ForTooLong = " for too long"
)

// IsOpinion reports whether a vote is what its checker sees at the time, so that it may be wrong.
// It takes the reason why the vote does not count, empty if it does.
func IsOpinion(disbelieved string) bool {
	switch strings.TrimSuffix(disbelieved, ForTooLong) {
	case FirstReportAwaited, WarmingUp, NextReportAwaited, NotReported, NotHeard:
		return false
	}
	return true
}

// Vote is what one checker reports of one endpoint.
type Vote struct {
	Endpoint       EndpointID
	Status         Status
	HTTPStatusCode uint16 // 0 where there was none
}

// Verdict is the health of an endpoint, as its votes decide it.
type Verdict struct {
	Status       Status
	Since        time.Time // zero where there was no verdict yet
	Reason       string
	Observations []Observation
	Zones        []ZoneVerdict // what the checkers of each zone see
}

// ZoneVerdict is what the checkers of one zone see of an endpoint.
type ZoneVerdict struct {
	Region, Zone string // of the checkers; empty for those without a zone
	Status       Status // UNKNOWN where there is no vote, or as many up as down
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
	Moved        *Locality // the other one of a move; nil: it is none
}
