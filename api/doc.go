// Package api answers questions about health, and takes what operators ask hdsd
// to do: the hdsd.v1 services over gRPC and, by their HTTP annotations, over REST.
//
// It owns the shapes that programs outside see (messages and page tokens; rest has
// the errors) and knows nothing of how the answers come about: a Backend gives
// them, and a Controller does what is asked. Every list is paged by stable
// tokens that are bound to the question they continue, so that a token used
// with another question is an error instead of a wrong answer; what a watcher
// is given can be resumed behind the token of each event. What may stand in a
// URL is read from the protos, as is the OpenAPI document, which is served at
// /v1/openapi.json and .yaml. No web page of another site can change anything
// through the browser of someone who may. It starts no goroutine.
//
// It may import health, rest, the generated hdsd.v1 code and the gRPC libraries.
package api
