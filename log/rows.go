package log

import "time"

// Established is a checker that is not on probation.
type Established struct {
	Identity string    // verified; empty: it has none
	Seen     time.Time // when it was last connected
	StandIn  time.Time // since when it stands in for checkers that are away; zero: it does not
	Founder  bool      // a newcomer that had seats when the first checkers became established, and had yet to vote
}

// Trials are the results of canaries for shapes of endpoints.
type Trials struct {
	Proven []Proof
	Blamed []uint64 // shapes that were on trial when a checker was lost
	Losses []Loss   // during trials

	// Retries counts the retries of a blocked version that a checker did not survive.
	Retries int
}

// Proof says that a build of checker survives a shape of endpoints.
type Proof struct{ Build, Shape uint64 }

// Loss is a checker that was lost.
type Loss struct {
	Checker  string
	Identity string // verified; without one, the checker's id
	Time     time.Time
}

// Penalty is the damping of an endpoint that went down lately.
type Penalty struct {
	Value      float64 // at the time At; positive
	At         time.Time
	Suppressed bool // the penalty rose far enough to hold the endpoint down, and has not fallen far enough since
}
