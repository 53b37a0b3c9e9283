// Package truth is the world that a simulated fleet lives in: what is really
// up and down, and what can reach what.
//
// It owns the facts. Only the simulation asks it: an observer whether one
// probe of its own succeeds, the judge whether a verdict was right. The pure
// packages under test must not import it. It starts no goroutine and imports
// the standard library only.
package truth
