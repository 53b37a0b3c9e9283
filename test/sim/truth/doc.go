// Package truth is the world of a simulated fleet: what is really up and down, and
// who can reach what.
//
// It owns the facts, and only the simulation asks for them: an observer asks whether
// its own probe succeeds, the judge whether a verdict was right. The pure packages
// under test must not import it. It starts no goroutine and imports the standard
// library only.
package truth
