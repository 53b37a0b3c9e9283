// Package feed keeps the sources of a configuration open. It turns their resources into
// deliveries: the changed clusters, prepared for every stage.
//
// # What it owns
//
// A Feed opens and closes sources, waits for their first answers, asks each for the assignments
// that clusters of the others use, and reports their faults. An Intake, which it contains,
// merges the sources and prepares clusters.
//
// # What it guarantees
//
// Deliveries come one at a time and in order. A delivery holds only what changed:
// a cluster that is the same under the same rules is not prepared again. Each
// source orders its own reads, and the Intake accepts sets only from a source that
// is open, so an older read never replaces a newer one. A reload leaves a source
// alone if its configuration is the same.
//
// If a source removes too much at once, the removed part stays in use (package source/hold),
// over a restart too: a file for each source keeps it. Changes of a cluster that alternates
// wait, there too.
//
// Answered closes once every management server has answered or was given up. The
// delivery of its answer comes before that.
//
// # Goroutines
//
// Start runs one goroutine for each source, and one that ends holds and delays when
// their time is over. They call the deliver function, and so does the caller's goroutine. Deliver may
// block: the source then waits. Reload stops the goroutines of sources that are no
// longer configured, and Stop all; both wait until they have ended. Clusters that changed are
// prepared on all processors, by goroutines that the change waits for.
package feed
