// Package scenario reads what a simulation works on: the clusters of a
// configuration's file sources, and the checkers, further clusters and data
// planes of a fleet file.
//
// It prepares clusters by the same rules as a coordinator
// (catalog), so that a simulation plans what hdsd would. It
// translates only: package simulate, which is pure, owns the simulation.
//
// The package has no state and starts no goroutine. It reads files and contacts
// no management server.
package scenario
