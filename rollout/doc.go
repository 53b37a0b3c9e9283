// Package rollout decides which version of each cluster a checker gets, and makes the checker's
// specifier.
//
// A new or changed cluster goes to one checker first, its canary (package canary). The others
// keep the last version that is proven for their build, or get the proven part of the new
// version. So two checkers may have different versions of a cluster. Specifier determines the
// changes for each checker.
//
// # Guarantees
//
//   - A checker gets versions that are proven for its build, and versions on trial as their
//     canary. No trial begins before Start.
//   - A checker's votes on an endpoint begin again exactly when its specifier changes
//     the checks of that endpoint. Only then does the checker treat it as a new
//     endpoint and report it again.
//   - A cluster whose shapes are all proven goes to all checkers at once, even a new one.
//   - When many clusters are proven one after the other, each specifier is made a few
//     times, not once for each cluster.
//   - A checker gets the next specifier when it follows the last one and not too many bytes
//     are on their way to all (Pace). Canaries do not wait, nor do checkers that have to lose a
//     part.
//
// # Effects
//
// Specifier and Tick return the work of their owner. An owner calls Tick after each batch of
// events and at NextDeadline. Lookup answers questions outside a Rollout: which cluster and
// endpoint an id stands for, and which checkers are connected.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one goroutine;
// time comes in as a value. It imports canary, catalog, envoy/specifier and health.
package rollout
