// Package health holds the types that all of hdsd uses: statuses, endpoints,
// checkers, votes, verdicts and transitions.
//
// It owns how these are named, compared and identified. It starts no goroutine
// and imports the standard library only, so any package may import it.
package health
