// Package catalog prepares clusters: it turns a cluster of a source, and its rules in the
// configuration, into the input of all later stages.
//
// A prepared Cluster holds the endpoints for checkers, the excluded ones with their reasons,
// its form for data planes over CDS and EDS, and its settings for checks and verdicts. Clusters
// and their Rules are immutable, so goroutines share them without a lock.
//
// The package is pure: it has no goroutine, lock, clock or log. It imports the packages whose
// terms it translates into: specifier for safe checks and shapes, publish for data planes,
// aggregate and assign for settings.
package catalog
