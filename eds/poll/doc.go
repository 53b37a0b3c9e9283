// Package poll remembers which clients fetch resources again and again, and what
// each was given.
//
// A client that polls has no stream. It is known by its node id and by how it
// fetches. It polls one list of names or several: an Envoy polls each assignment
// by itself. The answers themselves are not kept, only their versions.
//
// Guarantees:
//   - A poll is remembered until Stays after its latest fetch.
//   - All that a Tracker remembers takes the bytes it was made with; what was
//     fetched longest ago goes first.
//   - Clients that were given the same answer share what is remembered of it.
//   - Record and Requested cost what they are about, not what is remembered.
//
// A Tracker is safe for concurrent use. The package starts no goroutine, reads no
// clock and imports protos only.
package poll
