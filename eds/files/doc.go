// Package files keeps ClusterLoadAssignments as files, for Envoys that read
// endpoints by path_config_source. Each assignment has one file, which is replaced
// in one move when the assignment changes.
//
// It owns the layout of the folder. A file is a binary DiscoveryResponse with one
// ClusterLoadAssignment, unknown fields included, and its version; Name gives the
// file's name. The package is a delta client of the endpoint discovery service, so a
// slow disk delays nobody and gets the latest version. When it connects it says which
// versions are on disk: after a restart, or a failed write, it writes only what
// differs.
//
// Files of assignments that are gone are removed. The package's own files contain the
// coordinator's identifier; it leaves others alone. A file is whole whenever it can be
// seen, also after a power failure.
//
// It starts no goroutine: Run works on its caller's. The package imports the protos,
// grpc, renameio, zerolog and the Prometheus client.
package files
