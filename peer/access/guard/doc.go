// Package guard enforces what package access decides, on gRPC and HTTP servers.
//
// It asks for each call who makes it, by certificate and token, and refuses what its
// caller has no role for. Behind it, the call's context holds the caller
// (peer) and the permit (access.Permit), which says what the caller may be
// and see.
//
// It guarantees:
//   - No handler runs before its caller was judged.
//   - SetPolicy judges all open calls again. A stream whose caller may not make it any
//     more, or may not be the node that it said it is, ends with PERMISSION_DENIED, an
//     HTTP request by the end of its context.
//   - What is denied is counted and logged.
//   - In mode WARN nothing is refused; what would be is counted and logged.
//
// OIDC tokens are verified by go-oidc. An issuer is asked when its first token comes, so
// that none holds up a start, and a bounded number of times. A call ends when its token
// expires.
//
// It starts no goroutine: handlers have to watch their contexts. It may import access,
// peer, internal/rest, the configuration's generated messages, grpc, go-oidc,
// and the metrics and log libraries.
package guard
