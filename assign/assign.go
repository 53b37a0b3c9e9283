package assign

import "hdsd/health"

// ClassID numbers a Class inside one Planner.
type ClassID uint32

// Class says which checkers can check an endpoint.
type Class struct {
	Needs []health.Ability // all of them
	Reach *health.Reach    // nil: every checker

	Withheld bool // no checker may check it
}

// Endpoint is one endpoint to check.
type Endpoint struct {
	ID          health.EndpointID // dense; identifies this endpoint until it is removed
	Hash        health.Hash       // of the endpoint, as in the stored plan
	ClusterHash health.Hash       // endpoints of one cluster are kept together
	Locality    health.Locality   // its own zone; none if region and zone are empty
	Class       ClassID           // from Planner.Class
	Redundancy  int               // how many checkers; less than one counts as one
	Rate        int64             // its cost for each checker: checks in 1,000 seconds
	Zones       Placement         // in which zones its checkers should be
	Regions     Placement         // in which regions its checkers should be
}

// Change lists what happened since the last Apply. The order inside a list does not
// matter. Apply treats a checker in several lists as if Leave, Held, Lost, Doubted,
// Join and Blind came in this order. Remove comes before Upsert.
type Change struct {
	Upsert []Endpoint // new, or with another class, locality or redundancy
	Remove []health.EndpointID
	Join   []health.Checker // new, returned or changed; the planner keeps their maps: do not write to them
	Lost   []string         // stream gone, seat kept
	Leave  []string         // seat given up

	// Held checkers are lost, and keep their seats. They get no others, and no
	// substitutes until they are Lost or Doubted.
	Held []string

	// Doubted checkers keep their seats. Each of their endpoints gets a substitute
	// until they join again, even if they are lost meanwhile.
	Doubted []string

	// Blind checkers keep their seats, too. Endpoints get substitutes where other
	// checkers do not outnumber them, until the blind checkers join again.
	Blind []string

	// Endpoints of Divided zones get a substitute where they have fewer than two live
	// checkers in their own zone, until the zone is Undivided. Both name regions and
	// zones only.
	Divided, Undivided []health.Locality

	// Settling defers all placing and moving to the first Apply without it; see the
	// package comment.
	Settling bool
}

// Move lists the changes for one checker, live or not.
type Move struct {
	Checker     string
	Add, Remove []health.EndpointID // endpoints to start checking, and to stop checking
}

// Uncheckable is an endpoint that no checker has.
type Uncheckable struct {
	Endpoint health.EndpointID
	Class    ClassID
	Reason   Reason
}

// Reason says why an endpoint has fewer checkers than it should.
type Reason uint8

// The reasons.
const (
	Enough   Reason = iota // it has as many as it should
	Waiting                // it waits for the end of settling
	NoOthers               // every live checker checks it already
	TooFew                 // no other checker is able to check and reach it
	TooFar                 // the able checkers are not in its zone or region, and others are not allowed
	NoRoom                 // the able checkers are at their ceilings
)

// Diff lists the changes of an Apply. To update a copy of the plan, remove what each
// Move removes, then add what it adds.
type Diff struct {
	Moves       []Move              // at most one for each checker, by checker
	Uncheckable []Uncheckable       // endpoints that lost their last checker, or are new and have none
	Checkable   []health.EndpointID // endpoints that have a checker again
}

// Options are a Planner's parameters; the zero value has sensible defaults.
type Options struct {
	// Slack is by how many percent a checker may exceed its fair share while others
	// have room. With more slack, plans of different times are more alike; with less,
	// loads are more even. Default: 10.
	Slack int

	// Unit is the most endpoints that move as one. Default: 256.
	Unit int

	// Looks bounds how many checkers and units one Apply looks at to find room below
	// ceilings. The bound holds for endpoints that have some checkers but too few.
	// The rest waits for the next change that leaves room. A first plan has no bound.
	// Default: 2,097,152, some ten milliseconds.
	Looks int
}

// withDefaults sets the fields that are zero.
func (o Options) withDefaults() Options {
	if o.Slack <= 0 {
		o.Slack = 10
	}
	if o.Unit <= 0 {
		o.Unit = 256
	}
	if o.Looks <= 0 {
		o.Looks = 1 << 21
	}
	return o
}
