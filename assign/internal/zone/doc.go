// Package zone numbers zones and regions.
//
// A Table owns the numbers. They are small, so that they can index slices. A number
// is free again when its zone is empty, so no cost grows with the names that were
// ever used. A caller's decisions must not depend on the numbers; they may use Hash
// and Compare.
//
// It is not safe for concurrent use, starts no goroutine, and imports health,
// rendezvous and the standard library only.
package zone
