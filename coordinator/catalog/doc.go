// Package catalog prepares clusters: it turns a cluster of a source, and the
// configuration's rules for it, into what every later stage needs.
//
// A prepared Cluster says which endpoints checkers may be sent and which are
// excluded and why, what data planes get over CDS and EDS, and how its
// endpoints are to be checked and judged. Neither a Cluster nor the Rules that
// it was prepared by change once made, so goroutines share them without a lock.
//
// The package is pure: it has no goroutine, lock, clock or log. It imports the
// packages whose terms it translates into: specifier for what is safe to send,
// eds for what data planes get, aggregate and assign for settings, and canary
// for shapes.
package catalog
