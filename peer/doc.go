// Package peer says who makes a call: the verified names of the other end of a
// connection, and its address.
//
// A Caller is a value. What checks callers, or reads their tokens, puts what it found
// into the call's context (With); everything behind it takes it from there
// (FromContext, OfRequest). Where nobody has put one, it is derived from the
// connection: the verified client certificate and the remote address.
//
// Key is what to count a caller under: its identity or, without one, its connection.
// An address without its port would not do, since it may be a load balancer's.
//
// Below it stand what concerns callers: what they may do (access), the certificates by which they
// are known (certs), and what limits them (limit).
//
// It starts no goroutine, has no state, and imports grpc and the standard library.
package peer
