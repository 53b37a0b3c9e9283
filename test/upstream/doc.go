// Package upstream is an upstream whose behaviour can change while it runs. It
// answers health checks well, badly, slowly or not at all, and counts them.
//
// It owns the listener and the connections of each Server. It guarantees that a
// behaviour applies to every request read after it is set, and that only loopback
// peers are served. Each Server runs one goroutine that accepts and one for each
// connection. Close, or the end of Start's context, ends them all, and Close waits
// for them.
//
// Programs for tests use it, too. So it does not depend on testing, and imports the
// standard library only.
package upstream
