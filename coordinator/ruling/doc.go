// Package ruling decides what is published of each endpoint: the verdict of the votes, unless
// an override, a freeze or shadow mode stands above it.
//
// A Table owns the present clusters, the ids of their endpoints, the verdicts, the overrides
// and the freeze. It consists of these parts:
//
//	clusters    by name, and by the name of their assignment
//	rows        ids, and what is known of each endpoint
//	overrides   which override decides an endpoint
//	publishing  what is published of a row, given freeze, shadow mode and upstream_health
//	Pacing      how often the verdict of an endpoint may change
//	past        endpoints that are not there and whose health is remembered
//	zoneViews   the health that zones see where it differs
//
// Each call returns Effects: the endpoints that the aggregator and the planner have to know,
// and the decisions for the log (package decision). NextDeadline says when to call Expire and
// Release.
//
// # Guarantees
//
//   - The history of an endpoint is a chain: each transition starts where the previous one
//     ended, and the last one ends at the health that hdsd holds to be true.
//   - The verdict of an endpoint changes at most 10 times in a row, then once in 5 s, but
//     for 1,000 changes of all endpoints together and 2 more a second. What waits is
//     published after 5 s at the latest; what is left out is counted in the next
//     transition. Only an endpoint that waited lately takes memory for that.
//   - A change of overrides is one batch for data planes and for the history. While an
//     override decides, the history has the override, and Decision.Voted the verdict.
//   - While a verdict is not published, the assignment does not refer to it, so the endpoint
//     passes through. A freeze that holds health holds it by endpoint.
//   - An override also decides in a freeze, and does not expire in it.
//   - Data planes never see health in between two steps of one decision.
//   - An endpoint of which only the locality changes, in one change, keeps its health under a new id,
//     checked or excluded, and what a freeze holds. While hdsd was down counts as one change.
//     One that comes before the other goes has its verdict as well.
//   - An endpoint that leaves its source is recorded as gone, but not before hdsd has settled
//     and every source that may have it has answered.
//   - An id is not used again for a minute.
//
// # Purity
//
// The package has no goroutine, lock, clock or log. All calls come from one goroutine; time
// comes in as a value. It calls only the function that New takes. The cost of a verdict does
// not depend on the number of endpoints. A freeze costs all endpoints, an override those in
// its scope.
//
// It imports catalog for clusters, decision for what it returns, aggregate for verdicts, and
// eds and store for what they take.
package ruling
