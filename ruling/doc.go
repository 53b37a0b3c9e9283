// Package ruling decides the published health of each endpoint: the verdict of the votes,
// unless an override, a freeze or shadow mode stands above it.
//
// A Table owns the present clusters, the ids of their endpoints, the verdicts, the overrides
// and the freeze. It consists of these parts:
//
//	clusters    by name, and by the name of their assignment
//	rows        ids, and the state of each endpoint
//	overrides   the override that decides an endpoint
//	publishing  the published health of a row, given freeze, shadow mode and upstream_health
//	Pacing      how often the verdict of an endpoint may change
//	past        the remembered health of absent endpoints
//	zoneViews   the health that zones see, if it differs
//
// Each call returns Effects: changed endpoints for the aggregator and the planner, and
// decisions: each is a change for data planes and an entry of the log. NextDeadline says when to call Expire and Release.
//
// # Guarantees
//
//   - The history of an endpoint is a chain: each transition starts where the previous one
//     ended, and the last one ends at the health that hdsd holds to be true.
//   - The verdict of an endpoint changes at most 10 times in a row, then once in 5 s, but
//     for 1,000 changes of all endpoints together and 2 more a second. A waiting change is
//     published after 5 s at the latest; the next transition counts the omitted ones. Only
//     recently waiting endpoints take memory for that.
//   - A change of overrides is one batch for data planes and for the history. While an
//     override decides, the history has the override, and Decision.Voted the verdict.
//   - While a verdict is not published, the assignment does not refer to it, so the endpoint
//     passes through. A freeze that holds health holds it by endpoint.
//   - An override also decides in a freeze, and does not expire in it.
//   - Data planes never see health in between two steps of one decision.
//   - If one change moves an endpoint to another locality and changes nothing else, checked or
//     excluded, it keeps its health, and any health held by a freeze, under a new id. hdsd's
//     downtime counts as one change. If it appears first and disappears later, it keeps the
//     verdict, too.
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
// It imports catalog for clusters, aggregate for verdicts, and publish and log for its results.
package ruling
