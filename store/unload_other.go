//go:build !linux

package store

// unload does nothing: the kernel takes back what it needs.
func (*database) unload() {}
