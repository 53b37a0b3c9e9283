package health

import "time"

// Observation is the latest vote of one checker on one endpoint, as people see
// it.
type Observation struct {
	Checker        string
	Status         Status
	HTTPStatusCode uint16 // 0 where there was none
	Time           time.Time
	Disbelieved    string // why the vote did not count; empty where it did
}

// Vote is one checker's latest word on one endpoint, as it comes out of a
// report.
type Vote struct {
	Endpoint       EndpointID
	Status         Status
	HTTPStatusCode uint16 // 0 where there was none
}

// Verdict is what hdsd holds to be true of an endpoint.
type Verdict struct {
	Status       Status
	Since        time.Time // zero where there was no verdict yet
	Reason       string
	Observations []Observation
	Zones        []ZoneVerdict // what the checkers of each zone see
}

// ZoneVerdict is what the checkers of one zone see of an endpoint.
type ZoneVerdict struct {
	Region, Zone string // of the checkers; empty of those in none
	Status       Status // UNKNOWN where there is no vote, or they are even
	Up, Down     int    // votes
}

// Transition is a change of an endpoint's verdict.
type Transition struct {
	Time         time.Time
	Endpoint     Endpoint
	From, To     Status
	Reason       string
	Observations []Observation
}
