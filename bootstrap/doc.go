// Package bootstrap writes the bootstraps of Envoys that work with hdsd: a
// Checker takes its health checks from hdsd and reports to it, a Client takes
// clusters, endpoints and their health from it.
//
// What it writes is YAML with comments that say why, or the same as JSON. The
// command, the demonstration and the tests with real Envoys all write their
// bootstraps here. It reads no file and starts nothing: files it is told of,
// as certificates, are on the Envoy's machine.
package bootstrap
