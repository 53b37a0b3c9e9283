package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestFolderThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	asNobody(t)
	for _, data := range []string{dir, filepath.Join(dir, "data")} {
		_, err := Open(t.Context(), data, Options{})
		if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, fileName), 0o400); err != nil {
		t.Fatal(err)
	}
	asNobody(t)
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "choose another data_dir") {
		t.Error(err)
	}
}

// asNobody takes root's rights from this goroutine if root runs the tests, since root may
// write everywhere.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	if err := syscall.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Setfsuid(0)
		runtime.UnlockOSThread()
	})
}
