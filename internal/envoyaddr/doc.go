// Package envoyaddr writes what Envoy's messages have of an endpoint as health
// has it: its address, and its locality.
//
// An endpoint is its cluster, its locality and its address, and its address is
// text. So everything that names an endpoint, by what a source says, by what a
// checker reports or for the history, writes its address here, and two addresses
// are the same where they were written differently and are read as the same.
//
// It has no state and starts nothing. It may import health, protos and the
// standard library.
package envoyaddr
