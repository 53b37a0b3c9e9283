// Package rest serves requests in proto3 JSON over HTTP.
//
// A Server reads a request of bounded size, passes it to the handler of its path, and
// writes the answer. It refuses other paths and methods, bodies that are too large, and
// clients that are too slow to send a body or to read an answer.
//
// Errors are written as {"code","message"}, with the code of gRPC; WriteError does so
// for other handlers, too. The HTTP status follows from the code as in gRPC's gateways,
// except for an error of Errorf, which has its own. So RESOURCE_EXHAUSTED is 429, but
// 413 where the request is too large (TooLarge).
//
// A Budget bounds the bytes of bodies over all Servers that share it, and lets one large
// body at a time be processed.
//
// It starts no goroutine, and imports peer, peer/limit, the protos'
// runtime, grpc and its gateway, and net/http.
package rest
