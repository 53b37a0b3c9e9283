//go:build !linux

package store

// freeBytes knows nothing: a full disk fails the copy.
func freeBytes(string) (uint64, bool) { return 0, false }
