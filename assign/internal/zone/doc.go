// Package zone numbers zones and regions.
//
// A Table owns the numbers. They are small, so that slices can be indexed by
// them, and a number is free again when nobody is in its zone: no cost grows with
// the names that were ever used. Nothing that a caller decides may depend on how
// zones are numbered; Hash and Compare are for that.
//
// It is not safe for concurrent use, starts no goroutine, and imports health,
// rendezvous and the standard library only.
package zone
