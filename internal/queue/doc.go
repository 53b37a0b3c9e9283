// Package queue lets callers work in turn, a few at a time, in fair order.
//
// Each wait names a caller and a cost. Whoever was given least goes first (weighted fair
// queueing): a caller that asks for little is not kept waiting by others that ask for
// much, however many they are, and those get their turns too. Small work has a place of
// its own beside the large, so that it never waits for large work to end.
//
// A Queue is not bounded: its user bounds how many wait, by a share.Pool for instance. A
// wait ends with its context.
//
// It starts no goroutine, and imports the standard library only.
package queue
