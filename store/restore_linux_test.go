package store

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestOpenFollowsTheNameNotTheFile: if a history is replaced while Open waits for its
// lock, Open opens the new one.
func TestOpenFollowsTheNameNotTheFile(t *testing.T) {
	dir, from := folderOf(t, 7), copyOf(t, 20)
	opened := make(chan int, 1)
	r := RestoreOptions{Progress: func(done, size int64) {
		if done < size {
			return
		}
		go func() {
			s, err := Open(t.Context(), dir, Options{LockTimeout: time.Minute, mapSize: 1})
			if err != nil {
				t.Error(err)
				opened <- 0
				return
			}
			defer s.Close()
			opened <- len(queryAll(t, s, Query{}))
		}()
		for handles(t, filepath.Join(dir, fileName)) < 2 && len(opened) == 0 {
			runtime.Gosched()
		}
	}}
	if _, err := Restore(t.Context(), dir, from, r); err != nil {
		t.Fatal(err)
	}
	if got := <-opened; got != 20 {
		t.Errorf("%d transitions, want those of the copy", got)
	}
}

// handles counts how often this process has a file open.
func handles(t *testing.T, path string) (count int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if name, _ := os.Readlink("/proc/self/fd/" + fd.Name()); name == path {
			count++
		}
	}
	return count
}
