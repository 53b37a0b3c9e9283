package assign

import "hdsd/health"

// ClassID stands for a Class inside one Planner.
type ClassID uint32

// Class says which checkers can check an endpoint.
type Class struct {
	Needs []health.Ability // all of them
	Reach *health.Reach    // nil: every checker
}

// Endpoint is something to be checked.
type Endpoint struct {
	ID          health.EndpointID // dense; names this endpoint until it was removed
	Hash        health.Hash       // of the endpoint, as in the stored plan
	ClusterHash health.Hash       // endpoints of one cluster are kept together
	Locality    health.Locality   // its own zone; none if region and zone are empty
	Class       ClassID           // from Planner.Class
	Redundancy  int               // how many checkers; less than one counts as one
	Rate        int64             // what it costs each of them: checks in 1,000 seconds
	Zones       Placement         // in which zones they are to be
	Regions     Placement         // in which regions
}

// Change is what happened since the Apply before. Order inside a list is of no
// importance; what concerns one checker in several lists is done in the order
// Leave, Lost, Doubted, Join, Blind, and Remove comes before Upsert.
type Change struct {
	Upsert []Endpoint // new, or with another class, locality or redundancy
	Remove []health.EndpointID
	Join   []health.Checker // new, returned or changed; their maps are kept and must not be written to
	Lost   []string         // stream gone, seat kept
	Leave  []string         // seat given up

	// Doubted keep their seats, and each of their endpoints gets a substitute until
	// they join again, even if they are lost meanwhile.
	Doubted []string

	// Blind keep their seats as well, and where they are not outnumbered, substitutes
	// come until they are, or until they join again.
	Blind []string

	// Settling holds back everything that would be placed or moved until the
	// first Apply without it; see the package's comment.
	Settling bool
}

// Move is what changes for one checker, live or not.
type Move struct {
	Checker     string
	Add, Remove []health.EndpointID // to be checked from now on, and no longer
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
	NoOthers               // all checkers that are live have it
	TooFew                 // no other checker is able and reaches it
	TooFar                 // those that are able are not in its zone or region, and others may not
	NoRoom                 // those that are able are at their ceilings
)

// Diff is what an Apply changed. A mirror that takes out what each Move removes
// and then puts in what it adds has the plan.
type Diff struct {
	Moves       []Move              // at most one for each checker, by checker
	Uncheckable []Uncheckable       // can no longer be checked, or never could
	Checkable   []health.EndpointID // have a checker again
}

// Options are a Planner's parameters; the zero value has sensible ones.
type Options struct {
	// Slack is how many percent more than its fair share of checks a checker
	// may be given as long as others have room. More makes plans that were made
	// at different times more alike, less makes loads more even. Default: 10.
	Slack int

	// Unit is how many endpoints are moved as one at most. Default: 256.
	Unit int

	// Looks bounds how many checkers and units are looked at in one Apply to have
	// others make room below ceilings for endpoints that have a checker, but too
	// few. They stay short, and are looked at with the next change that leaves
	// room. A first plan is not bounded. Default: 2,097,152, some ten milliseconds.
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
