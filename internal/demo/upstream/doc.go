// Package upstream is an upstream whose behaviour can be switched while it
// runs: it answers health checks well, badly, slowly or not at all, and counts
// them.
//
// It owns the listener and the connections of each Server. It guarantees that
// a behaviour that was set holds for every request read afterwards, and that
// only loopback peers are served. Each Server runs one goroutine that accepts
// and one for each connection; Close, or the end of the context given to
// Start, ends them all, and Close waits for them.
//
// It serves end-to-end tests and the demonstration alike, so it does not
// depend on testing, and imports the standard library only.
package upstream
