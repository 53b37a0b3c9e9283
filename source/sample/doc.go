// Package sample makes the clusters of a source for tests.
//
// It has no state, starts no goroutine, and imports source and Envoy's messages.
// Only tests import it.
package sample
