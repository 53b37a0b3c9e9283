// Package rollout decides which version of each cluster a checker is sent, and
// makes the checker's specifier of it.
//
// A new or changed cluster goes to one checker first, its canary (package canary).
// The others keep the last version that is proven for their build, or get as much of
// the new version as is proven. So two checkers may have different versions of a
// cluster. Specifier determines what changes for each checker.
//
// # What it guarantees
//
//   - A checker gets versions that are proven for its build, and those that it tries
//     as a canary. Nothing is tried before Start.
//   - A checker's votes on an endpoint begin again exactly when its specifier changes
//     the checks of that endpoint. Only then does the checker treat it as a new
//     endpoint and report it again.
//   - A cluster whose shapes are all proven goes to all at once, also a new one.
//   - When many clusters are proven one after the other, each specifier is made a few
//     times, not once for each cluster.
//   - A checker gets the next specifier when it has followed the last, and while not too
//     many bytes are on their way to all (Pace). Canaries, and who has something that it
//     should not, do not wait.
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
