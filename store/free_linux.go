package store

import "syscall"

// freeBytes tells how much room there is where a path is.
func freeBytes(path string) (uint64, bool) {
	var about syscall.Statfs_t
	if err := syscall.Statfs(path, &about); err != nil {
		return 0, false
	}
	return about.Bavail * uint64(about.Bsize), true
}
