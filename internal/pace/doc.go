// Package pace keeps floods out of the log. A Pace logs one event of a kind a second, with the
// number of those that it left out. An Episode logs a trouble that comes and goes once a minute.
//
// It starts no goroutine, has no clock, and imports the standard library.
package pace
