// Package certs keeps the TLS of a server up to date while it runs.
//
// A Server follows the files of its certificate and of its clients' authorities, or takes
// both from SPIFFE's Workload API. What
// cannot be used (broken, expired, not valid yet) is refused, and what was used before
// stays. Each handshake uses what is current. Recheck says whether a client's
// certificate, verified in an earlier handshake, is still valid: neither it nor one of
// its authorities has expired, and no authority was withdrawn. Whoever owns the
// connections asks, and ends those that are not.
//
// It starts no goroutine; the client of the Workload API (go-spiffe) has some, for which
// Close waits. Of this module it imports internal/yamlpb, to read files, and
// the generated configuration.
package certs
