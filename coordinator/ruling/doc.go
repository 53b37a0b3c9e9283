// Package ruling decides what data planes are told of each endpoint: the verdict of
// the votes, unless an override, a freeze or shadow mode stands above it.
//
// A Table owns the present clusters, a dense id for each of their endpoints, the
// verdict of the votes on each, the overrides, the freeze, what zones see otherwise,
// and what was known before the start of endpoints that no source has yet. Its
// parts, one file each:
//
//	clusters.go    clusters by name and by the name of their assignment
//	rows.go        ids, and what is known of each endpoint
//	overrides.go   which override decides an endpoint
//	publishing.go  what data planes get of a row, given freeze, shadow mode and upstream_health
//	past.go        what was known before the start
//	zones.go       what zones see otherwise than the verdict is
//
// Each call returns Effects: what the aggregator and the planner have to follow, and
// the decisions for the log (package decision). Nothing has to be polled but
// NextDeadline, when Expire has something to do.
//
// # Guarantees
//
//   - The history of each endpoint is one chain: each transition goes on from the one
//     before, and the last one led to what is held to be true.
//   - A change of overrides is one batch, for data planes and for the history,
//     whatever it is for. While an override decides, its history has the override and
//     Decision.Voted what the votes come to.
//   - Of a shadowed or frozen endpoint the assignment refers to no verdict, so it goes
//     out as its source gave it. What a freeze holds is told by endpoint.
//   - Health that must not show does not show between two steps of one decision either.
//   - An endpoint that leaves its source is recorded as gone, but not before hdsd has
//     settled and each source that may have it has answered (past.go).
//   - An id rests for a minute before it is used again.
//
// # Purity
//
// The package has no goroutine, lock, clock or log. All calls come from one
// goroutine; time comes in as a value. It looks verdicts up by the function that New
// gets, and calls nobody else. A verdict costs the same whatever there is beside it;
// a freeze costs all endpoints, an override what it is for.
package ruling
