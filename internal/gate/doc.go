// Package gate lets a server shut down: it counts calls in and out.
//
// Close refuses new calls, tells those inside that the server is closing, and
// waits until the last one has left. A goroutine of a call counts as long as it
// runs, so that none outlives Close.
//
// It starts only the goroutines given to Go, and imports grpc for the status of
// its error.
package gate
