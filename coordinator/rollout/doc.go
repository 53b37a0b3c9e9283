// Package rollout decides which version of each cluster a checker is sent, and
// makes the checker's specifier of it.
//
// A new or changed cluster goes to one checker first, its canary (package canary).
// The others keep the last version that is proven for their build, or get as much of
// the new version as is proven. So two checkers may have different versions of a
// cluster: what has changed for a checker is found where its specifier is made.
//
// # What it guarantees
//
//   - A checker is sent what is proven for its build, and the versions that it is the
//     canary of. Nothing is tried before Start.
//   - The votes of a checker on an endpoint begin anew exactly where what it is sent
//     of the endpoint differs: only then does it take the endpoint for another, and
//     report it again.
//   - When many clusters are proven one after the other, each specifier is made a few
//     times, not once for each cluster.
//   - The same calls in the same order give the same answers.
//
// # Effects
//
// Specifier and Tick return what their owner has to do. An owner calls Tick after
// each batch of events and when NextDeadline has come. Lookup answers what a Rollout
// cannot know: which cluster and endpoint an id stands for, and who is connected.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one goroutine;
// time comes in as a value. It imports canary, catalog, hds/specifier and health.
package rollout
