package assign

import "hdsd/health"

// ClassID numbers a Class inside one Planner.
type ClassID uint32

// Class says which checkers can check an endpoint.
type Class struct {
	Needs []health.Ability // all of them
	Reach *health.Reach    // nil: every checker
}

// Endpoint is one endpoint to check.
type Endpoint struct {
	ID          health.EndpointID // dense; names this endpoint until it is removed
	Hash        health.Hash       // of the endpoint, as in the stored plan
	ClusterHash health.Hash       // endpoints of one cluster are kept together
	Locality    health.Locality   // its own zone; none if region and zone are empty
	Class       ClassID           // from Planner.Class
	Redundancy  int               // how many checkers; less than one counts as one
	Rate        int64             // its cost for each of them: checks in 1,000 seconds
	Zones       Placement         // in which zones they are
	Regions     Placement         // in which regions
}

// Change is what happened since the last Apply. The order inside a list does not
// matter. A checker in several lists goes through Leave, Lost, Doubted, Join and
// Blind in this order. Remove comes before Upsert.
type Change struct {
	Upsert []Endpoint // new, or with another class, locality or redundancy
	Remove []health.EndpointID
	Join   []health.Checker // new, returned or changed; the planner keeps their maps: do not write to them
	Lost   []string         // stream gone, seat kept
	Leave  []string         // seat given up

	// Doubted keep their seats, and each of their endpoints gets a substitute until
	// they join again, even if they are lost meanwhile.
	Doubted []string

	// Blind keep their seats, too. Where others do not outnumber them, endpoints get
	// substitutes until they do, or until the blind join again.
	Blind []string

	// Settling places and moves nothing until the first Apply without it; see the
	// package's comment.
	Settling bool
}

// Move is what changes for one checker, live or not.
type Move struct {
	Checker     string
	Add, Remove []health.EndpointID // to check from now on, and no longer
}

// Uncheckable is an endpoint that no checker has.
type Uncheckable struct {
	Endpoint health.EndpointID
	Class    ClassID
	Reason   Reason
}

// Reason is why an endpoint has fewer checkers than it should.
type Reason uint8

// The reasons.
const (
	Enough   Reason = iota // it has as many as it should
	Waiting                // it waits for the end of settling
	NoOthers               // all live checkers have it
	TooFew                 // no other checker is able to check it and reaches it
	TooFar                 // those that are able are not in its zone or region, and others may not
	NoRoom                 // those that are able are at their ceilings
)

// Diff is what an Apply changed. A copy of the plan stays current if it removes what
// each Move removes, then adds what it adds.
type Diff struct {
	Moves       []Move              // at most one for each checker, by checker
	Uncheckable []Uncheckable       // have no checker any more, or never had one
	Checkable   []health.EndpointID // have a checker again
}

// Options are a Planner's parameters; the zero value has sensible ones.
type Options struct {
	// Slack is how many percent above its fair share a checker may get while others
	// have room. With more, plans of different times are more alike; with less, loads
	// are more even. Default: 10.
	Slack int

	// Unit is how many endpoints move as one at most. Default: 256.
	Unit int

	// Looks bounds how many checkers and units one Apply looks at to find room below
	// ceilings for endpoints that have too few checkers, but one. The rest waits for
	// the next change that leaves room. A first plan has no bound. Default: 2,097,152,
	// some ten milliseconds.
	Looks int
}

// withDefaults fills in what is not set.
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
