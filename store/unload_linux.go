package store

import (
	"syscall"

	bolt "go.etcd.io/bbolt"
)

// unload removes the file's pages from this process's memory. They stay in the kernel's cache,
// as long as it has room. The mapping is of a file and never written, so nothing is lost.
func (d *database) unload() {
	if d.broken.Load() != nil {
		return // bbolt may keep its locks
	}
	_ = d.bolt.View(func(tx *bolt.Tx) error { // a transaction keeps the mapping where it is
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, d.bolt.Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
		return nil // if it fails, the pages stay
	})
}
