// Package boltfile checks the pages of a bbolt file without bbolt.
//
// bbolt follows every page number that it reads. A circle of pages overflows the
// stack, which no process survives. A wrong list of free pages makes bbolt
// overwrite good pages. Check finds both before bbolt opens the file.
//
// # Guarantees
//
// Any content comes to an end: an error or nil, never a panic. Memory stays within
// a few pages and one bit per page. Nothing is written.
//
// Salvage reads what is left of a damaged file, in the same bounds.
//
// Check reads branches, leaves, buckets inside leaves and the list of free pages.
// It knows nothing of what keys and values mean.
//
// The package starts no goroutine and imports only the standard library.
package boltfile
