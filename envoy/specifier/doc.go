// Package specifier decides what is safe to send to a checker, and builds the
// message.
//
// An Envoy trusts its health-check server, and lives only with specifiers that are
// right. So a specifier is never a copy of what a source said. This package owns the
// list of what is allowed:
//   - Translate walks a cluster, its endpoints and its health checks field by field.
//     It refuses fields that are not in the tables of rules*.go, leaves out those
//     that only concern logging, and tests the rest value by value.
//   - A refused endpoint is excluded alone, otherwise the cluster as a whole. The
//     reason names the field and says how to fix it.
//   - Build joins translated parts into the Specifier for one checker. It becomes a message when
//     it is sent (Encode), because an endpoint takes far less memory as an address.
//
// Guarantees:
//   - The same input gives the same message.
//   - A locality is never empty, and an endpoint is never listed twice.
//   - A cluster with TLS is never probed without TLS.
//   - Every message passes Envoy's own validation rules.
//
// Translated clusters are immutable and messages share their parts: do not change a
// Specifier's Message. The package starts no goroutine and has no state. It may
// import health, envoy, envoy/fields and protos.
package specifier
