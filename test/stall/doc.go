// Package stall plays HTTP clients that begin and hardly go on, for tests inside
// bubbles of testing/synctest: it measures how long a handler bears with them.
// The goroutines that it starts end before its functions return.
package stall
