// Package health is the vocabulary that all of hdsd speaks: statuses,
// endpoints, checkers, votes and transitions, with no behaviour beyond their
// own.
//
// It owns the names and identities; it starts no goroutine and imports the
// standard library only, so that every other package may import it.
package health
