package api

import "time"

const (
	// A watcher is shown up to fewChanges at once, so that a slow client can take them within
	// deafAfter, and up to manyChanges if its client is brisk: fewer, larger writes take a
	// quarter less of the processor.
	fewChanges, manyChanges = 100, 300

	// A client is brisk that has taken briskBytes without a write that took longer than
	// briskWrite. It is more than the systems of both sides keep for one that reads nothing.
	briskBytes = 1 << 20
	briskWrite = 100 * time.Millisecond
)

// appetite is how much the client of a watch takes at once.
type appetite struct {
	taken int // bytes since a write took long
}

// took notes a write.
func (a *appetite) took(bytes int, d time.Duration) {
	if a.taken += bytes; d > briskWrite {
		a.taken = 0
	}
}

// changes is how many the client is shown at once, at most.
func (a *appetite) changes() int {
	if a.taken < briskBytes {
		return fewChanges
	}
	return manyChanges
}
