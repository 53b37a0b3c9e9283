//go:build !linux

package disk

// Main does nothing: Start is for Linux.
func Main() {}
