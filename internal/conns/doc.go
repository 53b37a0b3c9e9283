// Package conns ends connections of a listener when their time is over.
//
// A connection ends when its caller's certificate is not valid any more, and when it has
// its maximum age. Each connection draws its own age, from 0.88 of the maximum to the
// whole of it, so that those that began together do not end together. Before that, from
// 0.72 to 0.88 of it, its server asks the client to move (IsOld; gRPC by its own
// settings), so that calls end by themselves. What is left then are streams.
//
// Whoever has a Listener calls Sweep, about once a second. Planned says of a connection
// that it ended for its age: its caller will be back.
//
// It starts no goroutine, and imports the standard library.
package conns
