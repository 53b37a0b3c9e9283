// Package rest is what services that are asked in proto3 JSON over HTTP have in
// common.
//
// A Server reads a request that is not endless, hands it to what serves its
// path, and writes the answer. It refuses other paths and methods, bodies that
// are too large, and clients that take too long to send one or to take an answer
// in. Errors are written as {"code","message"}, the code as in gRPC; WriteError
// does so for other handlers, too. The HTTP status follows from the code as in
// gRPC's gateways; an error of Errorf has its own. So RESOURCE_EXHAUSTED is 429,
// but 413 where it is the request that is too large (TooLarge).
//
// It starts no goroutine, has no state, and imports the protos' runtime, grpc and
// its gateway, and net/http.
package rest
