// Package files keeps ClusterLoadAssignments as files, for Envoys that take
// endpoints by path_config_source: one file for each assignment, which takes the
// place of the one before in one move, and only when the assignment changed.
//
// It owns the folder's layout. A file is a binary DiscoveryResponse of one
// ClusterLoadAssignment, unknown fields included, with its version; Name gives
// what it is called. The package is a delta client of the endpoint discovery
// service like any other, so a slow disk holds nobody up and gets the latest. What
// is on disk is what it says it has when it connects anew: after a restart, or
// a failure to write, only what differs is written.
//
// Files of assignments that are gone are removed; others than its own, which say
// the coordinator's identifier, are left alone. A file is whole whenever it can be
// seen, also after a power failure.
//
// Goroutines: none but the caller's of Run. The package imports the protos, grpc, renameio,
// zerolog and the Prometheus client.
package files
