// Package envoy converts Envoy's messages of endpoints: their addresses and localities to and from
// those of package health, and their encoded form to and from messages.
//
//   - An endpoint is its cluster, its locality and its address, and the address is text. Sources,
//     reports and the history all write it with this package. So two spellings of the same address
//     are one endpoint.
//   - Almost all endpoints are no more than an IP address and a port. It encodes and decodes those
//     several times as fast as the protobuf library, and packs them into their locality without a
//     message for each.
//
// Its packages know more of Envoy: fields (encoded messages), rules (what a Cluster or an assignment
// must not break) and specifier (what is safe to send to a checker).
//
// It has no state and starts no goroutine. Of this module it may import health, envoy/fields and
// internal/printable.
package envoy
