// Package rendezvous hashes names and ranks them by weighted rendezvous hashing
// (highest random weight): each pair of names has a score, and the highest score
// relative to its weight wins.
//
// It owns no state. It computes in whole numbers only, so scores and ranks are
// the same on every machine and in every release: stored plans rely on it. It
// starts no goroutine and imports the standard library only.
package rendezvous
