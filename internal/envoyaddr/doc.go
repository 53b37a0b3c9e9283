// Package envoyaddr converts the addresses and localities of Envoy's messages to
// those of package health.
//
// An endpoint is its cluster, its locality and its address, and the address is text.
// Sources, reports and the history all write it with this package. So two spellings
// of the same address are one endpoint.
//
// It has no state and starts no goroutine. It may import health, protos and the
// standard library.
package envoyaddr
