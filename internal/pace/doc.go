// Package pace keeps floods out of the log: of many events of a kind, one a second is
// logged, with the number of those that were not.
//
// It starts no goroutine, has no clock, and imports the standard library.
package pace
