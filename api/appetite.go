package api

import "time"

const (
	// A watcher gets up to fewChanges at once, which a slow client can read within deafAfter,
	// and up to manyChanges if its client is brisk: fewer, larger writes save a quarter of the
	// processor time.
	fewChanges, manyChanges = 100, 300

	// A client is brisk if it has read briskBytes without a write that took longer than
	// briskWrite: more than the systems of both sides buffer for a client that reads nothing.
	briskBytes = 1 << 20
	briskWrite = 100 * time.Millisecond
)

// appetite is how much the client of a watch reads at once.
type appetite struct {
	accepted int // bytes since the last slow write
}

// record adds a write.
func (a *appetite) record(bytes int, d time.Duration) {
	if a.accepted += bytes; d > briskWrite {
		a.accepted = 0
	}
}

// changes returns the bound of changes in one write.
func (a *appetite) changes() int {
	if a.accepted < briskBytes {
		return fewChanges
	}
	return manyChanges
}
