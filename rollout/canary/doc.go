// Package canary decides which checker gets a new or changed cluster first, and whether the
// others may have it.
//
// A cluster that no rule of envoy/specifier foresaw may still end the process of a
// checker. So each version of a cluster goes to one checker first, its canary. The
// others may have it when the canary has accepted it and survived a first probe.
//
// # Terms
//
// A shape stands for an endpoint as sent to a checker, without its address and names; a version
// of a cluster is the set of its shapes, which other clusters may have too. A build is a kind
// of checker: its version and abilities. A proof is a shape that a build has survived. A trial
// is a version at one checker, in one cluster. A shape is in at most one trial at a time, over
// all builds, so that a crash bug has one victim at a time. A charge is the shapes on trial
// when checkers were lost.
//
// # Guarantees
//
//   - A checker that may get a cluster asks for its trial (Try). A checker may try many
//     clusters at once. When it is lost, all of them are suspect.
//   - A shape that is proven for a build needs no trial in another cluster.
//   - A suspect is tried alone: its checker tries nothing else. If that checker is lost
//     as well, all versions with the shapes of both trials are blocked. So a crash bug costs
//     two checkers, in any number of clusters.
//   - The two are different checkers, and established ones, if others can try.
//   - A blocked version is retried by one established checker, with back-off.
//   - A suspect is tried only while no checker comes or goes, or at a checker that has
//     come back since. So a rolling restart does not hit it twice. A checker that is
//     lost again and again tries nothing, and does not disturb the others.
//   - If a canary does not accept a version, another checker tries it later and
//     alone. That never blocks the version.
//   - A version is suspect while it has a shape of a charge, and blocked while it has
//     all of one with two losses. A charge ends when no cluster has its shapes. It loses the
//     shapes that a checker survives.
//   - A proof holds for ever, and is kept while its shape is used.
//   - The same calls in the same order give the same answers.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one goroutine, its owner;
// time comes in as a value and never runs backwards. Events returns the results of trials. An
// owner calls Tick at NextDeadline. After that, and after events, it calls Try again for denied
// clusters.
//
// It imports health, and envoy/specifier for shapes.
package canary
