// Package api answers questions about health: the hdsd.v1 service over gRPC
// and, by its HTTP annotations, over REST.
//
// It owns the shapes that programs outside see (messages, page tokens, error
// bodies) and knows nothing of how the answers come about: a Backend gives
// them. Every list is paged by stable tokens that are bound to the question
// they continue, so that a token used with another question is an error
// instead of a wrong answer; what a watcher is given can be resumed behind the
// token of each event. It starts no goroutine.
//
// It may import health, the generated hdsd.v1 code and the gRPC libraries.
package api
