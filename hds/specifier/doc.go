// Package specifier decides what is safe to send to a checker, and builds it.
//
// It owns the allow-list: one bad field in a HealthCheckSpecifier ends the
// whole Envoy that receives it, so that a specifier is never a copy of what a
// source said. Translate walks a cluster, its endpoints and its health checks
// field by field. What the tables in rules*.go do not know is refused, what
// only concerns logging is left out, and the rest is tested value by value.
// What is refused is excluded alone (an endpoint, or a cluster as a whole)
// with a reason that names the field and says how to put it right. Build then
// joins translated parts into the message for one checker.
//
// Guarantees: the same input gives the same message; a locality is never
// empty; an endpoint is never listed twice; a cluster with TLS is never probed
// without it; whatever comes out passes Envoy's own validation rules.
//
// Translated clusters are not changed once made and their parts are shared
// between messages: a Specifier's Message must not be changed. The package
// starts no goroutine and has no state. It may import health and protos.
package specifier
