// Package bootstrap writes the bootstraps of Envoys that work with hdsd. A Checker
// takes its health checks from hdsd and reports to it. A Client takes clusters,
// endpoints and their health from hdsd.
//
// The output is YAML with comments that say why, or the same as JSON. The bootstrap
// command, the demonstration and the tests with real Envoys all use it.
//
// It reads no file and starts nothing. The paths that it writes, such as those of
// certificates, are on the Envoy's machine. It may import health.
package bootstrap
