// Package access decides who may do what: the policy of the configuration's access,
// a caller and what it says of itself → a decision.
//
// A Policy is compiled from grants. Judge gives the Authority that a caller has under
// it: its roles, and what its name binds. Every gRPC method and every HTTP path has
// its Need in one table (table.go). A Permit is the authority of one call, as the
// servers behind see it, in the call's context.
//
// It guarantees:
//   - What is not granted is denied. A method or path that the table lacks needs
//     ADMIN.
//   - A name binds to one node.id, region and zone only, however a pattern is written:
//     what could be read in two ways does not match.
//   - Tokens are compared by their hashes, in constant time.
//
// It is pure: no clock, goroutine, lock or log. peer/access/guard enforces what it decides.
// It may import peer, source (for globs), the configuration's generated
// messages and grpc.
package access
